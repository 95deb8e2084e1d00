import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import tls, { type TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { createSocketOpener } from '../../src/device/open-socket.ts'
import { deviceTls, pinOf } from '../../src/device/target.ts'
import { prepareSite, replaceFile } from '../process/serve.ts'
import { formAuth } from '../sign-in/devices.ts'
import { type Certificate, makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { ANY, opensslCertificate, startOpenssl } from '../support/openssl-server.ts'
import { explained } from '../support/records.ts'
import { PASSWORD, startSidecar } from '../support/sidecar.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const

const pinOfPem = (pem: string): string => pinOf(new X509Certificate(pem).raw)

/** A device whose certificate no check but the pin accepts: it has expired. */
const expired = (): Promise<Certificate> =>
  makeCertificate('device', { notBefore: new Date(0), notAfter: new Date('1980-01-01') })

const startOn = async (pair: Certificate, version: (typeof VERSIONS)[number]) => {
  const device = await startDevice(undefined, { tls: { ...pair, maxVersion: version } as Certificate })
  const resumed: boolean[] = []
  device.server.on('secureConnection', (socket: TLSSocket) => resumed.push(socket.isSessionReused()))
  return { device, resumed }
}

describe.each(VERSIONS)('H167 a pin, over %s', (version) => {
  it('accepts its certificate, on new and on resumed sessions, for requests and upgrades', async () => {
    const pair = await expired()
    const { device, resumed } = await startOn(pair, version)
    acceptWebSockets(device)
    const upstream = { tls: { pin: pinOfPem(pair.cert) }, reuse: 'never' }
    const sidecar = await startSidecar({ device, config: { upstream } })
    const token = await sidecar.token()
    for (let i = 0; i < 3; i += 1) expect((await sidecar.request({ token })).status).toBe(200)
    for (let i = 0; i < 2; i += 1) await openWebSocket(sidecar.url, { token })
    expect(resumed).toEqual([false, true, true, true, true])
  })

  it('sends another certificate nothing: no request, upgrade, health check or sign-in', async () => {
    const [pair, other] = [await expired(), await makeCertificate()]
    const { device } = await startOn(pair, version)
    const { upgrades } = acceptWebSockets(device)
    const passwordFile = join(temporaryDirectory(), 'device-password')
    writeFileSync(passwordFile, PASSWORD)
    const upstream = {
      tls: { pin: pinOfPem(other.cert) },
      health: { path: '/health', interval: '10s' },
      auth: { ...formAuth(), password: { file: passwordFile } },
    }
    const sidecar = await startSidecar({ device, config: { upstream } })
    const token = await sidecar.token()
    const response = await sidecar.request({ token, method: 'POST', path: '/secret', body: 'secret' })
    expect(response.status).toBe(500)
    expect(response.header('Proxy-Status')).toBe('postern; error=tls_certificate_error')
    const refused = await refusedWebSocket(sidecar.url, { token })
    expect(refused.status).toBe(500)
    const checked = async (): Promise<number> => {
      await sidecar.clock.advance(10_000)
      return device.connections
    }
    await expect.poll(checked).toBeGreaterThan(4)
    expect([device.byteCount, device.requests.length, upgrades.length]).toEqual([0, 0, 0])
  })

  it('is compared on a resumed session too', async () => {
    const pair = await makeCertificate()
    const { device } = await startOn(pair, version)
    const pinned = deviceTls({ pin: pinOfPem(pair.cert) })
    const openSocket = createSocketOpener({
      origin: device.url,
      socketPath: undefined,
      tls: pinned,
      reuse: 'shared',
      parser: 'strict',
    })
    const first = openSocket(() => first.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'))
    await once(first.resume(), 'close')
    Object.assign(pinned, { pin: pinOfPem((await makeCertificate()).cert) })
    const second = openSocket(() => expect.fail('the pin is not compared'))
    let reused = false
    // The cast holds because the origin is https.
    second.prependOnceListener('secureConnect', () => {
      reused = (second as TLSSocket).isSessionReused()
    })
    const [error] = await once(second, 'error')
    expect(error.message).toBe(`its certificate is not the pinned one: ${pinOfPem(pair.cert)} came`)
    expect(reused).toBe(true)
    expect(device.requests.map(({ target }) => target)).toEqual(['/'])
  })
})

it('H167 explain names the fingerprint that came, and the log says what to write', async () => {
  const [pair, other] = [await makeCertificate(), await makeCertificate()]
  const device = await startDevice(undefined, { tls: pair })
  const upstream = { tls: { pin: pinOfPem(other.cert) } }
  const sidecar = await startSidecar({ device, config: { upstream } })
  const token = await sidecar.token()
  for (let i = 0; i < 3; i += 1) await sidecar.request({ token, path: '/pinned' })
  const came = pinOfPem(pair.cert)
  expect(Object.values(await explained(sidecar, '/pinned')).join(' ')).toContain(
    `tls_certificate_error: its certificate is not the pinned one: ${came} came`,
  )
  await expect.poll(() => sidecar.logLines().join('')).toContain('cannot connect to the device')
  const line = sidecar.logLines().find((each) => each.includes('cannot connect to the device')) ?? ''
  expect(JSON.parse(line)).toMatchObject({
    reason: expect.stringContaining(
      `is not that of upstream.tls.pin: ${came} came; its SHA-256 fingerprint is `,
    ),
    remedy: expect.stringContaining(
      `then write under upstream: tls: {pin: ${came}}; if not, another machine`,
    ),
  })
})

it('H168 failed health checks alone make the log say what to write', async () => {
  const device = await startDevice(undefined, { tls: await makeCertificate() })
  const upstream = {
    tls: { pin: pinOfPem((await makeCertificate()).cert) },
    health: { path: '/', interval: '10s' },
  }
  const sidecar = await startSidecar({ device, config: { upstream } })
  const said = async (): Promise<string> => {
    await sidecar.clock.advance(10_000)
    return sidecar.logLines().join('')
  }
  await expect.poll(said).toContain('is not that of upstream.tls.pin')
  expect(device.requests).toEqual([])
})

describe('H166 upstream.tls', () => {
  it('holds for one service alone, and changes nothing for the public listener', async () => {
    const pair = opensslCertificate()
    const old = await startOpenssl(pair, '-tls1', '-cipher', ANY)
    const url = `https://127.0.0.1:${old?.port}`
    const weak = {
      weak: true,
      pin: pinOfPem(readFileSync(pair.certFile, 'utf8')),
    }
    const sidecar = await startSidecar({
      transport: 'tls',
      device: { url },
      config: { upstream: { tls: weak, routes: { '/strict/': { url, tls: { insecure: true } } } } },
    })
    const token = await sidecar.token()
    expect((await sidecar.request({ token })).status).toBe(200)
    const strict = await sidecar.request({ token, path: '/strict/a' })
    expect(strict.header('Proxy-Status')).toBe('postern; error=tls_protocol_error')
    expect(Object.values(await explained(sidecar, '/strict/a')).join(' ')).toContain(
      'tls_protocol_error: the device speaks only older versions of TLS',
    )
    const port = Number(new URL(sidecar.url).port)
    for (const options of [
      { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: ANY },
      { maxVersion: 'TLSv1.2', sigalgs: 'RSA+SHA1:ECDSA+SHA1', ciphers: ANY },
    ] as const) {
      const client = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...options })
      closeLater(() => void client.destroy())
      await expect(once(client, 'secureConnect')).rejects.toThrow()
    }
  })

  it('a renewed client certificate is used for new connections, without a restart', async () => {
    const [pair, own, next] = await Promise.all(
      ['device', 'own', 'next'].map((name) => makeCertificate(name)),
    )
    if (pair === undefined || own === undefined || next === undefined) return
    const shown: string[] = []
    const device = await startDevice(undefined, {
      tls: { ...pair, requestCert: true, ca: [own.cert, next.cert] } as Certificate,
    })
    device.server.on('secureConnection', (socket: TLSSocket) =>
      shown.push(String(socket.getPeerCertificate().subject?.CN)),
    )
    const folder = temporaryDirectory()
    const [cert, key] = [join(folder, 'client.pem'), join(folder, 'client.key')]
    copyFileSync(own.certFile, cert)
    copyFileSync(own.keyFile, key)
    const upstream = { tls: { ca: pair.certFile, cert, key }, reuse: 'never' }
    const sidecar = await (await prepareSite({ device, config: { upstream } })).serve()
    const { access_token: token } = await sidecar.grant()
    expect(await sidecar.use(token)).toBe(200)
    replaceFile(key, next.key)
    await sidecar.waitForLog('configuration not reloaded: the previous one stays in effect')
    expect(await sidecar.use(token)).toBe(200)
    replaceFile(cert, next.cert)
    await sidecar.waitForLog('configuration reloaded')
    expect(await sidecar.use(token)).toBe(200)
    expect(shown).toEqual(['own', 'own', 'next'])
  })

  it.each([
    ['of another pair', 'belongs to another certificate than'],
    ['that is no key', 'holds no private key in PEM'],
  ])('with a client key %s prevents the start', async (what, says) => {
    const [own, other] = [await makeCertificate(), await makeCertificate()]
    const keyFile = what === 'of another pair' ? other.keyFile : other.certFile
    const config = { upstream: { tls: { cert: own.certFile, key: keyFile } } }
    await expect(startSidecar({ device: { url: 'https://127.0.0.1:9' }, config })).rejects.toThrow(says)
  })

  it('a device whose sessions break costs no request, and is offered no other', async () => {
    const pair = await makeCertificate()
    const device = await startDevice(undefined, { tls: pair })
    const { port } = new URL(device.url)
    const offers: boolean[] = []
    // Resets a client that offers a session, which makes its first message of 340 bytes some hundred bytes longer.
    const picky = createTcpServer((socket) => {
      const behind = connectTcp(Number(port), '127.0.0.1')
      for (const each of [socket, behind]) each.on('error', () => {})
      socket.once('close', () => behind.destroy())
      socket.once('data', (hello: Buffer) => {
        offers.push(hello.length > 500)
        if (hello.length > 500) return void socket.resetAndDestroy()
        behind.write(hello)
        socket.pipe(behind).pipe(socket)
      })
    })
    closeLater(() => void picky.close())
    await once(picky.listen(0, '127.0.0.1'), 'listening')
    const url = `https://127.0.0.1:${(picky.address() as AddressInfo).port}`
    const upstream = { tls: { ca: pair.certFile }, reuse: 'never' }
    const sidecar = await startSidecar({ device: { url }, config: { upstream } })
    const token = await sidecar.token()
    const statuses: number[] = []
    for (let i = 0; i < 5; i += 1)
      statuses.push((await passUntil(sidecar.clock, sidecar.request({ token }))).status)
    expect(statuses).toEqual([200, 200, 200, 200, 200])
    expect(offers).toEqual([false, true, false, false, false, false])
  })
})
