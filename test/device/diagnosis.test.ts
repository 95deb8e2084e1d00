import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import tls from 'node:tls'
import { describe, expect, it } from 'vitest'
import { canDiagnose, diagnose, watchTrouble } from '../../src/device/diagnosis.ts'
import type { UpstreamTarget } from '../../src/device/target.ts'
import { deviceTls, pinOf } from '../../src/device/target.ts'
import { explainCertificate } from '../../src/device/tls-faults.ts'
import { type Certificate, makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { unusedPort } from '../support/raw.ts'
import { PATIENCE } from '../support/running-test.ts'

const targetOf = (origin: string, part: Partial<UpstreamTarget> = {}): UpstreamTarget => ({
  origin,
  socketPath: undefined,
  reuse: 'shared',
  parser: 'auto',
  ...part,
})

const secured = async (certificate: Certificate): Promise<string> =>
  (await startDevice(undefined, { tls: certificate })).url

describe('H109 an https device', () => {
  it('with a self-signed certificate: the diagnosis has its fingerprint and says how to trust it', async () => {
    const url = await secured(await makeCertificate())
    const found = await diagnose(targetOf(url), 'upstream', PATIENCE, stillClock())
    expect(found?.reason).toMatch(/is self-signed; its SHA-256 fingerprint is ([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
    expect(found?.remedy).toMatch(
      /^compare the fingerprint with that on the device, then write under upstream: tls: \{pin: sha256\/[\w+/]{43}=\}; or set upstream\.tls\.ca /,
    )
    expect(found?.remedy).not.toContain('insecure')
  })

  it('whose certificate differs from tls.ca: the reason says so', async () => {
    const [device, other] = await Promise.all([makeCertificate('device'), makeCertificate('other')])
    const found = await diagnose(
      targetOf(await secured(device), { tls: deviceTls({ ca: other.cert }) }),
      'upstream',
      PATIENCE,
      stillClock(),
    )
    expect(found?.reason).toContain('is self-signed, and not in upstream.tls.ca; ')
  })

  it('whose certificate has another name: the diagnosis lists its names', async () => {
    const device = await makeCertificate()
    const server = tls.createServer({ cert: device.cert, key: device.key })
    closeLater(() => void server.close())
    await once(server.listen(0, '127.0.0.2'), 'listening')
    const url = `https://127.0.0.2:${(server.address() as AddressInfo).port}`
    const found = await diagnose(
      targetOf(url, { tls: deviceTls({ ca: device.cert }) }),
      'upstream.routes./a/',
      PATIENCE,
      stillClock(),
    )
    expect(found?.reason).toContain('is for another name: DNS:localhost, IP Address:127.0.0.1')
    expect(found?.remedy).toContain(
      'or write one of its names into upstream.routes./a/.url, which /etc/hosts can lead to its address',
    )
    expect(found?.remedy).not.toContain('.tls.ca')
  })

  it('whose certificate has expired, or is not valid yet: the diagnosis has the date', async () => {
    const past = await makeCertificate('past', {
      notBefore: new Date('2001-01-01'),
      notAfter: new Date('2002-01-01'),
    })
    const future = await makeCertificate('future', {
      notBefore: new Date('2090-01-01'),
      notAfter: new Date('2091-01-01'),
    })
    const [expired, early] = await Promise.all(
      [past, future].map(async (device) =>
        diagnose(
          targetOf(await secured(device), { tls: deviceTls({ ca: device.cert }) }),
          'upstream',
          PATIENCE,
          stillClock(),
        ),
      ),
    )
    expect(expired?.reason).toContain('was valid until Jan  1 00:00:00 2002 GMT')
    expect(early?.reason).toContain('is valid from Jan  1 00:00:00 2090 GMT')
  })

  it('that is trusted, or not checked, has no problem', async () => {
    const device = await makeCertificate()
    const url = await secured(device)
    expect(
      await diagnose(
        targetOf(url, { tls: deviceTls({ ca: device.cert }) }),
        'upstream',
        PATIENCE,
        stillClock(),
      ),
    ).toBeUndefined()
    expect(
      await diagnose(
        targetOf(url, { tls: deviceTls({ insecure: true }) }),
        'upstream',
        PATIENCE,
        stillClock(),
      ),
    ).toBeUndefined()
  })

  it('that answers in cleartext: the diagnosis says to write http', async () => {
    const url = (await startDevice()).url
    const found = await diagnose(targetOf(url.replace('http:', 'https:')), 'upstream', PATIENCE, stillClock())
    expect(found?.reason).toMatch(/^the device answers without TLS, and the URL says https \(/)
    expect(found?.remedy).toContain(`set upstream.url to ${url}`)
  })

  it('that has no cipher in common: the diagnosis names the error', async () => {
    const { cert, key } = await makeCertificate()
    const old = tls.createServer({ cert, key, minVersion: 'TLSv1.2', ciphers: 'PSK', maxVersion: 'TLSv1.2' })
    old.on('tlsClientError', () => {})
    closeLater(() => void old.close())
    await once(old.listen(0, '127.0.0.1'), 'listening')
    const { port } = old.address() as AddressInfo
    const found = await diagnose(targetOf(`https://127.0.0.1:${port}`), 'upstream', PATIENCE, stillClock())
    expect(found?.reason).toMatch(
      /^the device takes no cipher, group or signature that it is offered \(ERR_SSL_.*HANDSHAKE_FAILURE\)$/,
    )
    expect(found?.remedy).toContain('openssl s_client -connect 127.0.0.1:')
  })

  it.each([
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', undefined, 'from an unknown authority, and not for h; '],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'PEM', 'from an unknown authority, and not in upstream.tls.ca, and not'],
    ['CERT_REVOKED', undefined, 'is refused (CERT_REVOKED)'],
  ])('that is refused with %s is explained', (refusal, ca, says) => {
    const raw = Buffer.from('DER')
    const certificate = { raw, fingerprint256: 'AB', subject: {} } as tls.PeerCertificate // these codes need no other part of it
    const found = { certificate, refusal, groups: [] }
    const explained = explainCertificate(found, { origin: 'https://h' }, { ca }, 'upstream')
    expect(explained?.reason).toContain(says)
    expect(explained?.tls).toBe(`{pin: ${pinOf(raw)}}`)
  })
})

describe('H109 an http device', () => {
  it('that speaks TLS: the diagnosis says to write https', async () => {
    const url = await secured(await makeCertificate())
    expect(
      await diagnose(targetOf(url.replace('https:', 'http:')), 'upstream', PATIENCE, stillClock()),
    ).toEqual({
      reason: `the device speaks TLS at ${new URL(url).host}, and upstream.url says http`,
      remedy: `set upstream.url to ${url}`,
    })
  })

  it('that speaks no TLS, is off, or never answers, is not explained', async () => {
    const clock = stillClock()
    const silent = net.createServer(() => void clock.advance(10_000))
    closeLater(() => void silent.close())
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    const { port } = silent.address() as AddressInfo
    const urls = [
      (await startDevice()).url,
      `http://127.0.0.1:${await unusedPort()}`,
      `http://127.0.0.1:${port}`,
    ]
    for (const url of urls) expect(await diagnose(targetOf(url), 'upstream', 10_000, clock)).toBeUndefined()
  })
})

it('only a failure that TLS can cause is diagnosed, and none of a Unix socket', () => {
  const device = targetOf('http://127.0.0.1')
  expect(canDiagnose('tls_certificate_error', targetOf('https://127.0.0.1'))).toBe(true)
  expect(canDiagnose('connection_terminated', device)).toBe(true)
  expect(canDiagnose('connection_timeout', targetOf('https://127.0.0.1'))).toBe(true)
  expect(canDiagnose('connection_timeout', device)).toBe(false)
  expect(canDiagnose('connection_refused', device)).toBe(false)
  expect(canDiagnose('http_protocol_error', device)).toBe(false)
  expect(canDiagnose('connection_terminated', targetOf('http://localhost', { socketPath: '/x' }))).toBe(false)
})

it('H109 the cause is looked for at the third failure in a row, then once an hour', async () => {
  const clock = stillClock()
  let looks = 0
  const breaker = { successes: 0 }
  const { failed, close } = watchTrouble(targetOf(`https://127.0.0.1:${await unusedPort()}`), {
    ...{ key: 'upstream', breaker, patience: PATIENCE, onFound() {}, onBug() {} },
    clock: {
      ...clock,
      after(time, end) {
        looks += 1
        return clock.after(time, end)
      },
    },
  })
  /** The looks that have begun, after this many more failures. */
  const looksAfter = (failures: number): number => {
    for (let i = 0; i < failures; i += 1) failed('tls_certificate_error')
    return looks
  }
  expect(looksAfter(2)).toBe(0)
  breaker.successes += 1
  expect(looksAfter(2)).toBe(0)
  expect(looksAfter(1)).toBe(1)
  expect(looksAfter(9)).toBe(1)
  close()
})

it('an attempt ends when it is aborted, and explains nothing', async () => {
  const device = net.createServer()
  closeLater(() => void device.close())
  await once(device.listen(0, '127.0.0.1'), 'listening')
  const { port } = device.address() as AddressInfo
  const ending = new AbortController()
  const accepted = once(device, 'connection') as Promise<[net.Socket]>
  const attempt = diagnose(
    targetOf(`https://127.0.0.1:${port}`),
    'upstream',
    PATIENCE,
    stillClock(),
    ending.signal,
  )
  const [socket] = await accepted
  const closed = once(
    socket.resume().on('error', () => {}),
    'close',
  )
  ending.abort()
  expect(await attempt).toBeUndefined()
  await closed
  expect(
    await diagnose(targetOf(`https://127.0.0.1:${port}`), 'upstream', PATIENCE, stillClock(), ending.signal),
  ).toBeUndefined()
})
