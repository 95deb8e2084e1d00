import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { connect, createServer, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import { diagnose } from '../../src/device/diagnosis.ts'
import { createSocketOpener } from '../../src/device/open-socket.ts'
import { deviceTls } from '../../src/device/target.ts'
import { systemClock } from '../../src/system/clock.ts'
import { readPeersSafely } from '../../src/system/peer-certificate.ts'

/** What the process is to do: connect to a server with a certificate, or be the server that demands one of its client. */
export type Job = { readonly id: number; readonly ca: string } & (
  | { readonly port: number }
  | { readonly own: { readonly cert: string; readonly key: string } }
)

/** The port of the server, then what is wrong. */
export type Report = { readonly id: number } & ({ readonly port: number } | { readonly faults: string[] })

/** All that OpenSSL has, so that a peer can show as many kinds of keys as possible. */
const EVERYTHING = {
  rejectUnauthorized: false,
  ciphers: 'ALL:@SECLEVEL=0',
  ecdhCurve: 'X25519:P-256:P-384:P-521:brainpoolP256r1:brainpoolP384r1:brainpoolP512r1:secp256k1',
}

/** How long a handshake may take (ms). */
const LONGEST = 20_000

/** Connects as Postern does, explains a refusal as Postern does, and reads the chain over either version of TLS. */
async function connectTo(port: number, ca: string): Promise<string[]> {
  const tls = deviceTls({ ca, weak: true, groups: EVERYTHING.ecdhCurve.split(':') })
  const origin = `https://127.0.0.1:${port}`
  const target = { origin, socketPath: undefined, reuse: 'never', parser: 'auto', tls } as const
  const socket = createSocketOpener(target)(() => socket.destroy())
  await ended(socket)
  await diagnose(target, 'upstream', LONGEST, systemClock)
  const faults: string[] = []
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const peer = connect({ ...EVERYTHING, host: '127.0.0.1', port, ca, maxVersion }, () => {
      faults.push(...faultsIn(peer))
      peer.destroy()
    })
    await ended(peer)
  }
  return faults
}

async function ended(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  socket.on('error', () => {})
  socket.once('close', () => resolve())
  await promise
}

/** Demands a certificate of the first client and reads it. */
async function acceptFrom(
  own: { readonly cert: string; readonly key: string },
  ca: string,
  listening: (port: number) => void,
): Promise<string[]> {
  readPeersSafely()
  const { promise, resolve } = Promise.withResolvers<string[]>()
  const server = createServer({ ...EVERYTHING, ...own, ca, requestCert: true }, (socket) => {
    socket.on('error', () => {})
    resolve(faultsIn(socket))
    socket.destroy()
  })
  server.on('tlsClientError', () => resolve([]))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  listening((server.address() as AddressInfo).port) // listening on TCP
  const faults = await promise
  server.close()
  return faults
}

/** What Node's own object says, too. */
const COMMON = [
  ...['raw', 'ca', 'subject', 'issuer', 'subjectaltname', 'valid_from', 'valid_to', 'serialNumber'],
  ...['fingerprint', 'fingerprint256', 'fingerprint512'],
] as const satisfies readonly (keyof DetailedPeerCertificate)[]

/** Reads all that the peer shows. Where Node does not crash, its own object has to say the same. */
function faultsIn(socket: TLSSocket): string[] {
  const faults: string[] = []
  let shown: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
  while (shown?.raw !== undefined) {
    const own = objectOfNode(new X509Certificate(shown.raw))
    for (const field of own === undefined ? [] : COMMON) {
      const [ours, theirs] = [shown[field], own?.[field]]
      if (!isDeepStrictEqual(plain(ours), plain(theirs)) && !isUnnamed(theirs))
        faults.push(`another ${field}: ${JSON.stringify(ours)} instead of ${JSON.stringify(theirs)}`)
    }
    shown = shown.issuerCertificate === shown ? undefined : shown.issuerCertificate
  }
  return faults
}

/** Node puts a value that it finds too long, or whose type has no name in OpenSSL, under an empty name. */
const isUnnamed = (names: unknown): boolean => Object.hasOwn(Object(names), '')

/** Whatever its prototype. */
const plain = (value: unknown): unknown =>
  Object.prototype.toString.call(value) === '[object Object]' ? { ...(value as object) } : value

function objectOfNode(shown: X509Certificate) {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = shown.publicKey
    const isDescribed =
      asymmetricKeyType !== 'ec' ||
      /^(?:prime256v1|secp(?:224|384|521)r1|prime192v1)$/.test(asymmetricKeyDetails?.namedCurve ?? '')
    return isDescribed ? shown.toLegacyObject() : undefined
  } catch {
    return undefined
  }
}

const report = (message: Report): void => void process.send?.(message)

process.on('message', (job: Job) => {
  const { id, ca } = job
  const working =
    'port' in job ? connectTo(job.port, ca) : acceptFrom(job.own, ca, (port) => report({ id, port }))
  working.then(
    (faults) => report({ id, faults }),
    (error: Error) => report({ id, faults: [`an error: ${error.stack}`] }),
  )
})
