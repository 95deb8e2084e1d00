import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import http2 from 'node:http2'
import net from 'node:net'
import { join } from 'node:path'
import tls from 'node:tls'
import { beforeEach, describe, expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { connect } from '../support/client.ts'
import { type MovableClock, passUntil, stillClock } from '../support/clock.ts'
import { rawConnection, rawPeer } from '../support/raw.ts'
import { hasRead, nextAccepted } from '../support/waiting.ts'
import { openWebSocket } from '../support/websocket.ts'
import { prepareSite, type Serving, type Site } from './serve.ts'
import { duringStart } from './starting.ts'
import { bearer, broken, holdResponses, openResponse } from './streams.ts'

const CLEAN = { code: 0, signal: null }
/** How long requests in flight may take to finish (ms). */
const GRACE = 10_000

let clock: MovableClock

beforeEach(() => {
  clock = stillClock()
})

const serve = (site: Site): Promise<Serving> => site.serveHere({ clock })

/** Lets time pass until the sidecar has stopped. It closes these connections itself: before the grace is over, which would end them, too. */
async function expectStop(sidecar: Serving, ...closed: readonly Promise<unknown>[]): Promise<void> {
  const before = clock.monotonic()
  await passUntil(clock, Promise.all(closed))
  expect(clock.monotonic() - before).toBeLessThan(GRACE)
  expect(await passUntil(clock, sidecar.exit)).toEqual(CLEAN)
}

/** Sends SIGTERM and waits until the sidecar is no longer ready. */
async function askToStop(sidecar: Serving): Promise<void> {
  sidecar.signal('SIGTERM')
  await expect.poll(() => sidecar.ready(), { interval: 10 }).toBe(503)
}

/** Starts a sidecar with a response in flight: the device has sent its first piece. */
async function serveSlowly(start: (site: Site) => Promise<Serving> = serve) {
  const site = await prepareSite()
  const held = holdResponses(site.device)
  const sidecar = await start(site)
  const tokens = await sidecar.grant()
  const connection = await sidecar.connect()
  const slow = connection.start({ path: '/events/slow', fields: bearer(tokens.access_token) })
  await slow.waitFor('first piece')
  return { site, held, sidecar, connection, slow, ...tokens }
}

describe('Stopping by SIGTERM', () => {
  it('lets a running exchange finish while readiness is 503 and new connections are refused, then exits with 0', async () => {
    const { site, held, sidecar, slow, access_token, refresh_token } = await serveSlowly()
    expect(await sidecar.ready()).toBe(200)
    await askToStop(sidecar)
    await expect(sidecar.request({ token: access_token })).rejects.toThrow('ECONNREFUSED')
    // Longer than the time after which idle connections are closed: this one must not count as idle.
    await clock.advance(700)
    held.get('/events/slow')?.end('last piece')
    expect((await slow.response).text).toBe('first piece\nlast piece')
    await expectStop(sidecar)
    expect(sidecar.log.at(-1)?.msg).toBe('stopped')

    // Every issued token is stored.
    const again = await site.serveHere()
    expect(await again.use(access_token)).toBe(200)
    expect((await again.refresh(refresh_token)).status).toBe(200)
  })

  it('closes a persistent connection right after its running exchange, not after its idle timeout', async () => {
    const site = await prepareSite({ transport: 'tls' })
    const held = holdResponses(site.device)
    const sidecar = await serve(site)
    const { access_token } = await sidecar.grant()
    const connection = await connect({ transport: 'tls', url: sidecar.url })
    const download = connection.start({ path: '/download/slow', fields: bearer(access_token) })
    await download.waitFor('first piece')
    const idle = await connect({ transport: 'tls', url: sidecar.url })
    await idle.send({ fields: bearer(access_token) })
    await askToStop(sidecar)
    // The download goes on after the time in which an idle connection may still bring a request.
    await passUntil(clock, idle.closed)
    held.get('/download/slow')?.end(Buffer.alloc(1_000_000 - 'first piece\n'.length))
    expect((await download.response).body).toHaveLength(1_000_000)
    await expectStop(sidecar, connection.closed)
  })

  it('closes idle connections: persistent, of HTTP/2, silent, and half-closed before the TLS handshake', async () => {
    const site = await prepareSite({ transport: 'tls' })
    const sidecar = await serve(site)
    const { access_token } = await sidecar.grant()
    const tcp = sidecar.url.replace('https', 'http')
    const idle = await Promise.all([
      connect({ transport: 'tls', url: sidecar.url }),
      connect({ transport: 'h2', url: sidecar.url }),
    ])
    for (const connection of idle) await connection.send({ fields: bearer(access_token) })
    const handshaken = await rawConnection(sidecar.url)
    const [silent, left] = [await rawConnection(tcp), await rawConnection(tcp)]
    left.end()
    await once(left.socket, 'finish')
    ;(await rawConnection(sidecar.url)).socket.destroy()
    sidecar.signal('SIGTERM')
    await expectStop(sidecar, ...idle.map(({ closed }) => closed), handshaken.closed, silent.closed)
  })

  it('closes connections to a Unix socket that never begin their TLS handshake', async () => {
    const path = join(temporaryDirectory(), 'postern.sock')
    const site = await prepareSite({
      config: { listen: { address: `unix:${path}` } },
      transport: 'tls',
    })
    const sidecar = await serve(site)
    const silent = Array.from({ length: 3 }, () => rawPeer(net.connect(path)))
    await Promise.all(silent.map(({ socket }) => once(socket, 'connect')))
    const shaken = rawPeer(tls.connect({ path, rejectUnauthorized: false }))
    await once(shaken.socket, 'secureConnect')
    sidecar.signal('SIGTERM')
    await expectStop(sidecar, ...[...silent, shaken].map(({ closed }) => closed))
  })

  it('closes a cleartext connection without a request', async () => {
    const site = await prepareSite()
    const sidecar = await serve(site)
    const silent = await rawConnection(sidecar.url)
    sidecar.signal('SIGTERM')
    await expectStop(sidecar, silent.closed)
  })

  it('still answers a request on a persistent connection, and closes the connection after it', async () => {
    const { sidecar, access_token, held, slow } = await serveSlowly()
    const accepted = nextAccepted(sidecar.url)
    const kept = await rawConnection(sidecar.url)
    const request = `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${access_token}\r\n\r\n`
    kept.write(request)
    expect(await kept.waitFor('from the device')).not.toMatch(/^connection: close/im)
    kept.forget()
    // Without its first bytes, the connection would be closed after half a second.
    kept.write(request.slice(0, 9))
    await hasRead(await accepted, request.length + 9)
    await askToStop(sidecar)
    await clock.advance(700)
    kept.write(request.slice(9))
    expect(await kept.closed).toMatch(/^HTTP\/1\.1 200 OK\r\n(.*\r\n)*connection: close\r\n/i)
    held.get('/events/slow')?.end()
    await slow.response
    await expectStop(sidecar)
  })

  it('still answers the next request if the response in flight has promised persistence', async () => {
    const { sidecar, access_token, held, connection, slow } = await serveSlowly()
    await askToStop(sidecar)
    const next = connection.send({ fields: bearer(access_token) })
    held.get('/events/slow')?.end()
    expect((await slow.response).header('connection')).not.toBe('close')
    const last = await next
    expect([last.status, last.header('connection')]).toEqual([200, 'close'])
    await expectStop(sidecar)
  })

  it('sends GOAWAY on HTTP/2 sessions, and lets their running streams finish', async () => {
    const site = await prepareSite({ transport: 'h2' })
    const held = holdResponses(site.device)
    const sidecar = await serve(site)
    const { access_token } = await sidecar.grant()
    const session = http2.connect(sidecar.url, { rejectUnauthorized: false })
    closeLater(() => session.destroy())
    const goneAway = once(session, 'goaway')
    const stream = session.request({ ':path': '/events/h2', authorization: `Bearer ${access_token}` })
    let text = ''
    stream.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    await once(stream, 'data')
    sidecar.signal('SIGTERM')
    expect((await goneAway)[0]).toBe(http2.constants.NGHTTP2_NO_ERROR)
    held.get('/events/h2')?.end('last piece')
    await once(stream, 'end')
    expect(text).toBe('first piece\nlast piece')
    await expectStop(sidecar)
  })

  it('closes tunnels to the client and to the device', async () => {
    const site = await prepareSite({ transport: 'tls' })
    holdResponses(site.device)
    const sidecar = await serve(site)
    const { access_token } = await sidecar.grant()
    const { socket } = await openWebSocket(sidecar.url, { token: access_token })
    const closed = once(socket, 'close')
    sidecar.signal('SIGTERM')
    await closed
    await expectStop(sidecar)
    await site.device.waitForOpenConnections(0)
  })

  it('breaks off responses that outlast the grace, and exits with 0', async () => {
    const site = await prepareSite({ transport: 'tls' })
    holdResponses(site.device)
    const sidecar = await serve(site)
    const { access_token } = await sidecar.grant()
    const exchanges = await Promise.all(
      (['tls', 'h2'] as const).map((transport) =>
        openResponse(sidecar, bearer(access_token), `/events/${transport}`, transport),
      ),
    )
    await askToStop(sidecar)
    await clock.advance(GRACE - 1)
    expect(exchanges.map(({ open }) => open)).toEqual([true, true])
    await clock.advance(1)
    await Promise.all(exchanges.map((exchange) => exchange.broken))
    expect(await passUntil(clock, sidecar.exit)).toEqual(CLEAN)
    expect(sidecar.log.at(-1)?.msg).toBe('stopped')
  })

  it('refuses what still waits for a place, also beside a client that reads nothing, and exits with 0', async () => {
    const site = await prepareSite({ config: { upstream: { max_in_flight: 1 } } })
    site.device.handle(() => {})
    const sidecar = await serve(site)
    const { access_token } = await sidecar.grant()
    const clients = await Promise.all([1, 2, 3].map(() => rawConnection(sidecar.url)))
    const head = `Host: x\r\nAuthorization: Bearer ${access_token}\r\nContent-Length: 2\r\n\r\nab`
    for (const [i, client] of clients.entries()) client.write(`PUT /${i} HTTP/1.1\r\n${head}`)
    await expect.poll(() => sidecar.metric('postern_upstream_queued')).toBe(2)
    clients.at(-1)?.socket.pause()
    await askToStop(sidecar)
    await clock.advance(GRACE)
    expect(await passUntil(clock, sidecar.exit)).toEqual(CLEAN)
    const first = site.device.requests[0]?.target.slice(1)
    const waited = clients.find((_, i) => i < 2 && String(i) !== first)
    expect(await waited?.closed).toMatch(/^HTTP\/1\.1 500 (.*\r\n)*retry-after: \d+\r\n/i)
    expect(site.device.requests).toHaveLength(1)
  })

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'ends without grace at a second signal, %s, and loses no line',
    async (second) => {
      // The program itself handles both.
      const { sidecar, slow, access_token, site } = await serveSlowly((site) => site.serve())
      const change = await rawConnection(sidecar.url)
      change.write(
        `PUT /change HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${access_token}\r\nContent-Length: 2\r\n\r\nab`,
      )
      await expect.poll(() => site.device.requests.at(-1)?.target).toBe('/change')
      await askToStop(sidecar)
      sidecar.signal(second)
      expect(await sidecar.exit).toEqual(CLEAN)
      await broken(slow)
      const paths = sidecar.log.filter(({ msg }) => msg === 'request').map(({ path }) => path)
      expect(paths).toEqual(expect.arrayContaining(['/events/slow', '/change']))
      expect(sidecar.log.at(-1)?.msg).toBe('stopped')
      expect(readdirSync(site.stateDir)).not.toContain('control.sock')
    },
  )

  it('works before the sidecar listens', async () => {
    const site = await prepareSite()
    const sidecar = await duringStart(site, ({ signal }) => signal('SIGTERM'))
    expect(await sidecar.exit).toEqual(CLEAN)
    expect((await site.serveHere()).logged('token file: unusable, set aside; starting empty')).toEqual([])
  })
})
