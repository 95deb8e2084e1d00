import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import tls from 'node:tls'
import { expect, it } from 'vitest'
import { createHandshakes } from '../../src/listen/handshakes.ts'
import { createLingering } from '../../src/listen/linger.ts'
import { TurnBudget } from '../../src/system/turn-budget.ts'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** Every suite of TLS 1.2 that OpenSSL has: nearly all of RFC 9113 appendix A are among them. */
const SUITES = tls.getCiphers().filter((name) => !name.startsWith('tls_'))

/** The suites for a key of that type: ECDHE with AEAD. */
function wanted(key: string): readonly string[] {
  return ['aes128-gcm-sha256', 'aes256-gcm-sha384', 'chacha20-poly1305'].map((name) => `ecdhe-${key}-${name}`)
}

/** A handshake with these offers; undefined if the listener refuses it. */
async function handshake(
  { url }: Pick<TestSidecar, 'url'>,
  offers: tls.ConnectionOptions,
): Promise<tls.TLSSocket | undefined> {
  const { port } = new URL(url)
  const socket = tls.connect({ host: '127.0.0.1', port: Number(port), rejectUnauthorized: false, ...offers })
  closeLater(() => {
    socket.destroy()
  })
  return once(socket, 'secureConnect').then(
    () => socket,
    () => undefined,
  )
}

/** The suites that the listener agrees to, when a client offers each of them alone. */
async function agreed(sidecar: TestSidecar, protocol: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const suite of SUITES) {
    const ciphers = `${suite.toUpperCase()}:@SECLEVEL=0`
    const offers = { ciphers, maxVersion: 'TLSv1.2', ALPNProtocols: [protocol] } as const
    const socket = await handshake(sidecar, offers)
    if (socket === undefined) continue
    expect([socket.alpnProtocol, socket.getCipher().name.toLowerCase()]).toEqual([protocol, suite])
    found.push(suite)
  }
  return found.toSorted()
}

for (const [keyType, key] of [
  ['rsa', 'rsa'],
  ['ec', 'ecdsa'],
] as const) {
  it(`H217 with a certificate of type ${keyType}, TLS 1.2 has forward secrecy and AEAD only`, async () => {
    const { certFile: cert, keyFile } = await makeCertificate('one', { keyType })
    const config = { listen: { tls: { cert, key: keyFile } } }
    const sidecar = await startSidecar({ transport: 'h2', config })
    expect(SUITES.length).toBeGreaterThan(40)
    expect(await agreed(sidecar, 'h2')).toEqual(wanted(key))
    expect(await agreed(sidecar, 'http/1.1')).toEqual(wanted(key))
  })
}

it('H217 the same holds after a new certificate', async () => {
  const [one, two] = [
    await makeCertificate('one', { keyType: 'rsa' }),
    await makeCertificate('two', { keyType: 'rsa' }),
  ]
  const known = {
    valid: { from: { of: '', at: 0 }, until: { of: '', at: 0 } },
    names: [],
    authority: undefined,
  }
  const handshakes = createHandshakes({
    clock: stillClock(),
    limits: { tlsTimeout: 60_000 },
    material: { ...known, ...one },
    turnsOf: () => new TurnBudget(),
    readable: (wire) => wire,
    lingering: createLingering(stillClock()),
    accept: () => {},
    onFailed: () => {},
    plainHttpMessage: () => '',
  })
  const server = createServer(handshakes.begin).listen(0, '127.0.0.1')
  closeLater(() => {
    server.close()
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // listening on TCP
  const url = `https://127.0.0.1:${port}`
  handshakes.applyTls({ ...known, ...two })
  const socket = await handshake({ url }, { maxVersion: 'TLSv1.2' })
  expect(socket?.getPeerCertificate().subject.CN).toBe('two')
  for (const ciphers of ['AES128-GCM-SHA256', 'ECDHE-RSA-AES128-SHA', 'AES256-SHA256'])
    expect(await handshake({ url }, { ciphers, maxVersion: 'TLSv1.2' }), ciphers).toBeUndefined()
})

it('H217 the key exchange is X25519MLKEM768 with every client that has it, and X25519 or P-256 with others', async () => {
  const sidecar = await startSidecar({ transport: 'tls' })
  const groupFor = async (ecdhCurve: string): Promise<unknown> => {
    const info = (await handshake(sidecar, { ecdhCurve, minVersion: 'TLSv1.3' }))?.getEphemeralKeyInfo()
    return info === undefined || info === null || !('name' in info) ? undefined : info.name
  }
  expect(await groupFor('auto')).toBe('X25519MLKEM768')
  expect(await groupFor('X25519:P-256:X25519MLKEM768')).toBe('X25519MLKEM768')
  expect(await groupFor('X25519')).toBe('X25519')
  expect(await groupFor('P-256')).toBe('prime256v1')
})

it('H217 a client that has both gets TLS 1.3, and one that has only TLS 1.1 nothing', async () => {
  const sidecar = await startSidecar({ transport: 'tls' })
  const both = await handshake(sidecar, { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3' })
  expect(both?.getProtocol()).toBe('TLSv1.3')
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const
  expect(await handshake(sidecar, old)).toBeUndefined()
})
