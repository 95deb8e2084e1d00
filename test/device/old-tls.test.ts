import { getDiffieHellman, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { createSecureContext, createServer as createTlsServer } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { diagnose } from '../../src/device/diagnosis.ts'
import { probeDevice } from '../../src/device/own-request.ts'
import { pinOf } from '../../src/device/target.ts'
import type { Diagnosis } from '../../src/device/tls-faults.ts'
import { upstreamDeadlines, upstreamTarget } from '../../src/forward/service-settings.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { ANY, opensslCertificate, startOpenssl } from '../support/openssl-server.ts'
import { PATIENCE } from '../support/running-test.ts'
import { startBareTls } from './bare-tls.ts'
import { startSmallBuffer } from './small-buffer.ts'

const serviceOf = (url: string, tls: string) =>
  loadConfig({ sets: [`upstream.url=${url}`, `upstream.tls=${tls}`, 'password.file=none'] }).upstream

/** The status of the device with this `upstream.tls`. */
async function statusWith(url: string, tls: string): Promise<number> {
  const service = serviceOf(url, tls)
  const target = await upstreamTarget(service, 'upstream')
  return (await probeDevice(target, upstreamDeadlines(service), '/', stillClock())).status
}

async function diagnosed(url: string, tls = '{}'): Promise<Diagnosis | undefined> {
  const target = await upstreamTarget(serviceOf(url, tls), 'upstream')
  return diagnose(target, 'upstream', PATIENCE, stillClock())
}

/** The same mapping without one of its keys, for each key. */
function lessThan(tls: string): string[] {
  const keys = tls.slice(1, -1).split(', ')
  return keys.map((left) => `{${keys.filter((key) => key !== left).join(', ')}}`)
}

const pinOfFile = (file: string): string => pinOf(new X509Certificate(readFileSync(file)).raw)

/** Finds the keys, tries them, and tries each of them left out. */
async function expectKeys(url: string, certFile: string, keys: string, reason: RegExp, given = '{}') {
  await expect(statusWith(url, given)).rejects.toThrow()
  const found = await diagnosed(url, given)
  expect(found?.reason).toMatch(reason)
  expect(found?.tls).toBe(keys.replace('PIN', `pin: ${pinOfFile(certFile)}`))
  expect(found?.remedy).toContain(`under upstream: tls: ${found?.tls}`)
  expect(await statusWith(url, found?.tls ?? '')).toBe(200)
  for (const fewer of lessThan(found?.tls ?? '')) {
    await expect(statusWith(url, fewer), fewer).rejects.toThrow()
  }
}

/** Diffie-Hellman parameters of 1024 bits: group 2 of RFC 2409, because to find others takes seconds. */
function smallGroup(): string {
  const start = Buffer.from('30818702818100', 'hex')
  const der = Buffer.concat([start, getDiffieHellman('modp2').getPrime(), Buffer.from('020102', 'hex')])
  const file = join(temporaryDirectory(), 'dh.pem')
  writeFileSync(
    file,
    `-----BEGIN DH PARAMETERS-----\n${der.toString('base64')}\n-----END DH PARAMETERS-----\n`,
  )
  return file
}

const OLD = /^the device speaks only older versions of TLS; .*fingerprint is [0-9A-F]{2}:/
const NO_CIPHER = /^the device takes no cipher, group or signature that it is offered; /
const TOO_WEAK =
  /^the key in the certificate of https:.*, or a signature of its chain, is too weak: the key has \d+ bits; /
const RSA_512 = ['-newkey', 'rsa:512']

describe('H168 the keys for a device of openssl s_server', () => {
  it.each<[string, string[], () => string[], string, RegExp]>([
    ['TLS 1.0', [], () => ['-tls1', '-cipher', ANY], '{weak: true, PIN}', OLD],
    ['TLS 1.1', [], () => ['-tls1_1', '-cipher', ANY], '{weak: true, PIN}', OLD],
    [
      'TLS 1.0, RSA-512 and MD5',
      [...RSA_512, '-md5'],
      () => ['-tls1', '-cipher', ANY],
      '{weak: true, PIN}',
      OLD,
    ],
    ['RSA-512', RSA_512, () => ['-tls1_2', '-cipher', ANY], '{PIN}', TOO_WEAK],
    ['RSA-1024', ['-newkey', 'rsa:1024'], () => ['-cipher', ANY], '{PIN}', TOO_WEAK],
    [
      'signatures by SHA-1 alone',
      [],
      () => ['-tls1_2', '-cipher', ANY, '-sigalgs', 'RSA+SHA1'],
      '{weak: true, PIN}',
      NO_CIPHER,
    ],
    [
      'DH of 1024 bits',
      [],
      () => ['-tls1_2', '-cipher', 'DHE-RSA-AES128-SHA:@SECLEVEL=0', '-dhparam', smallGroup()],
      '{weak: true, PIN}',
      /^the Diffie-Hellman group of the device is too small; /,
    ],
    [
      'Camellia alone',
      [],
      () => ['-tls1_2', '-cipher', 'CAMELLIA128-SHA:@SECLEVEL=0'],
      '{weak: true, PIN}',
      NO_CIPHER,
    ],
    ['P-521 alone', [], () => ['-groups', 'P-521'], '{groups: [P-256, secp521r1], PIN}', NO_CIPHER],
    [
      'a certificate on brainpoolP256r1',
      ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:brainpoolP256r1'],
      () => ['-groups', 'brainpoolP256r1:P-256'],
      '{groups: [P-256, brainpoolP256r1], PIN}',
      NO_CIPHER,
    ],
    [
      'brainpoolP384r1 alone, and a certificate on it',
      ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:brainpoolP384r1'],
      () => ['-groups', 'brainpoolP384r1'],
      '{groups: [P-256, brainpoolP384r1], PIN}',
      NO_CIPHER,
    ],
  ])('with %s', async (_name, certificate, options, keys, reason) => {
    const pair = opensslCertificate(...certificate)
    const server = await startOpenssl(pair, ...options())
    await expectKeys(`https://127.0.0.1:${server?.port}`, pair.certFile, keys, reason)
  })

  it.each([
    ['RSA-512', RSA_512],
    ['RSA-1024', ['-newkey', 'rsa:1024']],
    ['an MD5 signature', ['-md5']],
    ['a SHA-1 signature', ['-sha1']],
  ])('that is trusted by ca, with %s', async (_name, options) => {
    const ca = opensslCertificate()
    const pair = opensslCertificate(...options, '-CA', ca.certFile, '-CAkey', ca.keyFile)
    const server = await startOpenssl(pair, '-tls1_2', '-cipher', ANY)
    const url = `https://127.0.0.1:${server?.port}`
    const given = `{ca: ${ca.certFile}}`
    await expect(statusWith(url, given)).rejects.toThrow('did not respond (tls_certificate_error)')
    await expectKeys(
      url,
      pair.certFile,
      '{PIN}',
      /, or a signature of its chain, is too weak: the key has \d+ bits/,
      given,
    )
    expect(await statusWith(url, `{ca: ${ca.certFile}, weak: true}`)).toBe(200)
  })

  it.each(['-tls1_2', '-tls1_3'])('that demands a client certificate, over %s', async (version) => {
    const [pair, own] = [opensslCertificate(), opensslCertificate()]
    const server = await startOpenssl(
      pair,
      version,
      '-Verify',
      '1',
      '-verify_return_error',
      '-CAfile',
      own.certFile,
    )
    const url = `https://127.0.0.1:${server?.port}`
    const trust = `ca: ${pair.certFile}`
    await expect(statusWith(url, `{${trust}}`)).rejects.toThrow('tls_protocol_error')
    expect(await diagnosed(url, `{${trust}}`)).toMatchObject({
      reason: expect.stringMatching(
        /^the device demands a client certificate, or refuses the one that it gets \(/,
      ),
      remedy:
        'set upstream.tls.cert and upstream.tls.key to a certificate that the device takes, and its key',
    })
    expect(await statusWith(url, `{${trust}, cert: ${own.certFile}, key: ${own.keyFile}}`)).toBe(200)
  })

  it('that knows another server name', async () => {
    const pair = opensslCertificate()
    const two = ['-cert2', pair.certFile, '-key2', pair.keyFile]
    const server = await startOpenssl(pair, '-servername', 'device.example', '-servername_fatal', ...two)
    const url = `https://localhost:${server?.port}`
    expect(await diagnosed(url)).toMatchObject({
      reason: expect.stringMatching(/^the device does not know the server name that it is asked for \(/),
      remedy: expect.stringContaining('write its address into upstream.url, '),
    })
    // By an address it is asked for no name, and its certificate is compared with the address.
    expect(await statusWith(`https://127.0.0.1:${server?.port}`, `{ca: ${pair.certFile}}`)).toBe(200)
    const known = await startOpenssl(pair, '-servername', 'localhost', '-servername_fatal', ...two)
    expect(await statusWith(`https://localhost:${known?.port}`, `{pin: ${pinOfFile(pair.certFile)}}`)).toBe(
      200,
    )
  })

  it('whose clock is in 1970', async () => {
    const pair = await makeCertificate('device', { notBefore: new Date(0), notAfter: new Date('1980-01-01') })
    const server = await startOpenssl(pair)
    const url = `https://127.0.0.1:${server?.port}`
    const given = `{ca: ${pair.certFile}}`
    await expectKeys(
      url,
      pair.certFile,
      '{PIN}',
      /has expired, or the clock .* valid until Jan {2}1 .* 1980 GMT/,
      given,
    )
  })
})

describe('H168 a device with a TLS of its own', () => {
  it('without secure renegotiation, and without close_notify', async () => {
    const pair = await makeCertificate('device', { keyType: 'rsa' })
    const { url } = await startBareTls(pair, false)
    const reason = /^the device knows no secure renegotiation; /
    await expectKeys(url, pair.certFile, '{weak: true, PIN}', reason)
  })

  it('with a group of 512 bits, is spoken to without it', async () => {
    const pair = await makeCertificate('device', { keyType: 'rsa' })
    const { url } = await startBareTls(pair, true)
    expect(await statusWith(url, `{weak: true, pin: ${pinOfFile(pair.certFile)}}`)).toBe(200)
  })
})

it.each(['RC4-SHA', 'DES-CBC3-SHA'])('%s is not in the OpenSSL of Node, as the reference says', (ciphers) => {
  expect(() => createSecureContext({ ciphers: `${ciphers}:@SECLEVEL=0` })).toThrow('no cipher match')
})

it('H168 a device that has nothing of what OpenSSL has is named, and tried five times at most', async () => {
  let hellos = 0
  const device = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      hellos += 1
      // The alert handshake_failure.
      socket.end(Buffer.from('15030100020228', 'hex'))
    })
  })
  closeLater(() => void device.close())
  await once(device.listen(0, '127.0.0.1'), 'listening')
  expect(await diagnosed(`https://127.0.0.1:${(device.address() as AddressInfo).port}`)).toMatchObject({
    reason: expect.stringMatching(
      /^the device takes no cipher, group or signature that it is offered \(ERR_SSL_/,
    ),
    remedy: expect.stringContaining('openssl s_client -connect 127.0.0.1:'),
  })
  expect(hellos).toBe(5)
})

it('H168 http in the URL of a device with old TLS is named', async () => {
  const device = createServer((socket) => {
    // The alert protocol_version.
    socket.on('error', () => {}).once('data', () => socket.end(Buffer.from('15030100020246', 'hex')))
  })
  closeLater(() => void device.close())
  await once(device.listen(0, '127.0.0.1'), 'listening')
  const { port } = device.address() as AddressInfo
  expect(await diagnosed(`http://127.0.0.1:${port}`)).toMatchObject({
    remedy: `set upstream.url to https://127.0.0.1:${port}`,
  })
})

/** How many bytes the sidecar sends first. */
async function firstMessage(tls: string): Promise<number> {
  const hello = Promise.withResolvers<Buffer>()
  const device = createServer((socket) => void socket.on('error', () => {}).once('data', hello.resolve))
  closeLater(() => void device.close())
  await once(device.listen(0, '127.0.0.1'), 'listening')
  const { port } = device.address() as AddressInfo
  const status = statusWith(`https://localhost:${port}`, tls)
  const { length } = await hello.promise
  device.close()
  status.catch(() => {})
  return length
}

it.each(['{}', '{weak: true}'])('H168 a first message of TLS is below 512 bytes: %s', async (tls) => {
  expect(await firstMessage(tls)).toBeLessThan(512)
})

it('H168 a first message of TLS 1.2 alone is below 300 bytes', async () => {
  expect(await firstMessage('{max_version: TLSv1.2}')).toBeLessThan(300)
})

describe('H168 a device whose TLS has room for a first message of 300 bytes', () => {
  it.each(['closes', 'is silent'] as const)(
    'and that otherwise %s needs TLS 1.2 alone',
    async (otherwise) => {
      const pair = opensslCertificate()
      const server = await startOpenssl(pair)
      const clock = stillClock()
      const pass = (): void => void clock.advance(3_000)
      const takes = (length: number): boolean => length <= 300
      const { url } = await startSmallBuffer(server?.port ?? 0, takes, otherwise, pass)
      const target = await upstreamTarget(serviceOf(url, `{ca: ${pair.certFile}}`), 'upstream')
      const found = await diagnose(target, 'upstream', 3_000, clock)
      expect(found).toEqual({
        reason:
          otherwise === 'closes'
            ? 'the device breaks off the TLS handshake'
            : 'the device takes the connection, and does not answer the first message of TLS',
        remedy: 'write under upstream: tls: {max_version: TLSv1.2}',
        tls: '{max_version: TLSv1.2}',
      })
      expect(await statusWith(url, `{ca: ${pair.certFile}, max_version: TLSv1.2}`)).toBe(200)
    },
  )

  it('is spoken to with 400 bytes of room', async () => {
    const pair = opensslCertificate()
    const server = await startOpenssl(pair)
    const { url } = await startSmallBuffer(server?.port ?? 0, (length) => length <= 400, 'is silent')
    expect(await statusWith(url, `{ca: ${pair.certFile}}`)).toBe(200)
  })
})

it('H168 a device that was silent for a moment needs no other keys', async () => {
  const pair = opensslCertificate()
  const server = await startOpenssl(pair)
  let connections = 0
  const clock = stillClock()
  const pass = (): void => void clock.advance(3_000)
  const { url } = await startSmallBuffer(server?.port ?? 0, () => ++connections > 1, 'is silent', pass)
  const target = await upstreamTarget(serviceOf(url, `{ca: ${pair.certFile}}`), 'upstream')
  expect(await diagnose(target, 'upstream', 3_000, clock)).toBeUndefined()
  expect(connections).toBe(3)
})

it('a group that OpenSSL does not know is named, with its key', async () => {
  const target = upstreamTarget(serviceOf('https://127.0.0.1', '{groups: [P-256, P-255]}'), 'upstream')
  await expect(target).rejects.toThrow(
    'upstream.tls.groups: P-255 is no group of this OpenSSL; openssl ecparam -list_curves names most',
  )
})

it('H168 a device that answers no message of TLS is named, and no firewall', async () => {
  const clock = stillClock()
  const pass = (): void => void clock.advance(3_000)
  const { url } = await startSmallBuffer(0, () => false, 'is silent', pass)
  const target = await upstreamTarget(serviceOf(url, '{}'), 'upstream')
  expect(await diagnose(target, 'upstream', 3_000, clock)).toEqual({
    reason:
      'the device takes the connection, and does not answer the first message of TLS (ERR_TLS_HANDSHAKE_TIMEOUT)',
    remedy: expect.stringContaining('openssl s_client -connect 127.0.0.1:'),
  })
})

it.each([
  ['max_version: TLSv1.2', ['-tls1_3']],
  ['groups: [P-384]', ['-groups', 'P-256']],
])('H168 a key that keeps the device out is taken back: %s', async (given, options) => {
  const pair = opensslCertificate()
  const server = await startOpenssl(pair, ...options)
  const found = await diagnosed(`https://127.0.0.1:${server?.port}`, `{ca: ${pair.certFile}, ${given}}`)
  expect(found).toMatchObject({ remedy: `remove ${given.split(':')[0]} from upstream.tls`, tls: '{}' })
})

it('H168 groups that no version of TLS knows are named', async () => {
  const { url } = await startSmallBuffer(0, () => false, 'is silent')
  const found = await diagnosed(url, '{groups: [brainpoolP256r1]}')
  expect(found).toMatchObject({ remedy: expect.stringContaining('add P-256 to upstream.tls.groups') })
})

it('a device that wants ML-KEM gets it', async () => {
  const pair = await makeCertificate()
  const device = createTlsServer(
    { cert: pair.cert, key: pair.key, ecdhCurve: 'X25519MLKEM768' },
    (socket) => {
      socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    },
  )
  closeLater(() => void device.close())
  await once(device.listen(0, '127.0.0.1'), 'listening')
  const { port } = device.address() as AddressInfo
  expect(await statusWith(`https://127.0.0.1:${port}`, `{ca: ${pair.certFile}}`)).toBe(200)
})
