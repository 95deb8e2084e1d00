import { once } from 'node:events'
import type http from 'node:http'
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { prepareSite, type Served, type Site, tokensOf } from '../process/serve.ts'
import { type Device, readBody, startDevice } from '../support/device.ts'
import { ping } from '../support/http2-frames.ts'
import { rawSession } from '../support/http2-session.ts'
import { unusedPort } from '../support/raw.ts'
import { startRedis, until } from '../support/redis.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

/** One sidecar with TLS and a token file, and a fleet of two with a shared store, under traffic of every kind. */
export interface Scene {
  /** The admin listeners: that of the single sidecar, and those of the fleet. */
  readonly alone: string
  readonly fleet: readonly string[]
  /**
   * Makes each kind of event once. What is down in odd rounds is up in even ones.
   * @param scraped resolves when Prometheus has seen what is down
   */
  round(scraped: () => Promise<void>): Promise<void>
}

/** Beyond it, connections to the single sidecar are closed at once. */
const MOST_CONNECTIONS = 60

export async function startScene(): Promise<Scene> {
  // Fixed, because some are stopped and started again.
  const ports = await Promise.all(Array.from({ length: 5 }, unusedPort))
  const [storePort = 0, secondPort = 0] = ports
  const store = await startRedis({ port: storePort })
  const [device, second] = [await flawedDevice(), await startDevice(undefined, { port: secondPort })]
  acceptWebSockets(device)
  const admins = ports.slice(2).map((port) => `127.0.0.1:${port}`)
  const site = await prepareSite({
    device,
    transport: 'h2',
    config: {
      admin: { address: admins[0] },
      listen: { max_connections: MOST_CONNECTIONS },
      limits: { api: { requests: 30 } },
      tokens: { capacity: 8 },
      upstream: {
        max_in_flight: 2,
        routes: { '/second': { url: second.url, max_in_flight: 'auto' } },
        share: { paths: ['/slow/page'] },
      },
    },
  })
  site.configure({ password: undefined, passwords: [{ name: 'admin', file: site.passwordFile }] })
  const members = await Promise.all(
    admins.slice(1).map((address) =>
      prepareSite({
        device: second,
        config: {
          admin: { address },
          tokens: { store: `valkey://${store.at}` },
          limits: { store: 'shared', wrong_passwords: 'slow' },
        },
      }),
    ),
  )
  const [alone, ...fleet] = await Promise.all([site, ...members].map((each) => each.serve()))
  if (alone === undefined) throw new Error('no sidecar')
  let rounds = 0
  let spare = second
  return {
    alone: admins[0] ?? '',
    fleet: admins.slice(1),
    async round(scraped) {
      rounds += 1
      const broken = rounds % 2 === 1
      if (!broken) {
        await store.restart()
        spare = await startDevice(undefined, { port: secondPort })
        fleet.push((await members[1]?.serve()) as Served) // there are two members
      }
      const token = await loginAt(fleet[0] as Served) // the first member is never stopped
      await guess(fleet[0] as Served)
      await Promise.all([clients(alone, rounds), ...fleet.map((sidecar) => member(sidecar, token))])
      await operator(site, alone, rounds)
      if (broken) {
        await Promise.all([store.kill(), spare.stop(), fleet.pop()?.kill()])
        const { access_token: own } = await alone.grant()
        const path = '/second'
        await Promise.all([
          ...fleet.map((sidecar) => member(sidecar, token)),
          alone.request({ path, token: own }),
        ])
        await scraped()
      }
      await abuse(alone)
    },
  }
}

const MALFORMED = 'http/1.1 200 ok\nX-A : b\nContent-Length: 2\nContent-Length: 2\n\nhi'

/** A device that answers `/slow` late, `/missing` with 404, `/cut` not at all, and `/odd` with malformed HTTP. */
function flawedDevice(): Promise<Device> {
  return startDevice(async (request: http.IncomingMessage, response: http.ServerResponse) => {
    await readBody(request)
    const path = request.url ?? ''
    if (path === '/cut') return request.socket.destroy()
    if (path === '/odd') return request.socket.end(MALFORMED)
    if (path.startsWith('/slow')) await pause(400)
    response.statusCode = path === '/missing' ? 404 : 200
    response.end('x'.repeat(1_000))
  })
}

/** Clients of the single sidecar: honest ones, each round from another address, and one that asks too much. */
async function clients(alone: Served, round: number): Promise<void> {
  const from = `127.0.1.${round}`
  await Promise.all(Array.from({ length: 6 }, () => alone.grant()))
  const { access_token: token, refresh_token: refresh } = await alone.grant()
  await alone.refresh(refresh)
  await Promise.all(Array.from({ length: 11 }, () => alone.login('guessed')))
  await Promise.all([0, 1].map(() => alone.request({ token, path: '/slow/page', from })))
  const { socket } = await openWebSocket(alone.url, { token })
  await Promise.all([
    ...['/', '/missing', '/cut', '/odd', '/second'].map((path) => alone.request({ token, path, from })),
    ...Array.from({ length: 6 }, () => alone.request({ token, path: '/slow', from })),
    ...Array.from({ length: 6 }, () => alone.request({ token, path: '/second', from })),
    alone.request({ from }),
    alone.request({ token: 'unknown', from }),
    alone.request({ method: 'POST', token, body: 'x'.repeat(10_000), from }),
    ...Array.from({ length: 35 }, () => alone.request({ token, from: '127.0.0.9' })),
  ])
  socket.send('hello')
  await once(socket, 'message')
  socket.close()
  await once(socket, 'close')
}

/** A reload and a password file, both unusable in odd rounds, a revocation that ends a WebSocket, and in even rounds a token that is handed out. */
async function operator(site: Site, alone: Served, round: number): Promise<void> {
  const broken = round % 2 === 1
  const reloads = (): number =>
    alone.log.filter(({ msg }) => msg.startsWith(broken ? 'configuration not' : 'configuration reloaded'))
      .length
  const seen = reloads()
  site.configure({ limits: { api: { requests: broken ? 'many' : 30 + round } } })
  site.setPassword(broken ? '' : `${PASSWORD}\n`)
  alone.signal('SIGHUP')
  await until(async () => reloads() > seen)
  const { socket } = await openWebSocket(alone.url, {
    token: (await alone.grant()).access_token,
    from: `127.0.2.${round}`,
  })
  const closed = once(socket, 'close')
  await alone.revoke({ all: true })
  await closed
  if (!broken)
    expect(await site.postern('issue', '--name', 'admin', '--for', '30d')).toMatchObject({ code: 0 })
}

/** A token, as soon as the sidecar has found the store again. */
async function loginAt(sidecar: Served): Promise<string> {
  let response = await sidecar.login()
  await until(async () => {
    if (response.status !== 200) response = await sidecar.login()
    return response.status === 200
  })
  return tokensOf(response).access_token
}

/** Wrong passwords until one has to wait. */
async function guess(sidecar: Served): Promise<void> {
  await Promise.all(Array.from({ length: 5 }, () => sidecar.login('guessed')))
}

/** A client of a member of the fleet. What it gets while the store or the device is down is no matter. */
async function member(sidecar: Served, token: string): Promise<void> {
  await Promise.all([sidecar.login(), ...Array.from({ length: 5 }, () => sidecar.request({ token }))])
}

/** Clients that break the rules of TLS and HTTP/2, and one that opens too many connections. */
async function abuse({ url }: Served): Promise<void> {
  const port = Number(new URL(url).port)
  const plain = net.connect(port, '127.0.0.1')
  plain
    .on('error', () => {})
    .resume()
    .write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(plain, 'close')
  const session = await rawSession(url)
  session.raw.socket.on('error', () => {})
  session.send(...Array.from({ length: 400 }, () => ping()))
  await session.closed
  const many = Array.from({ length: MOST_CONNECTIONS + 5 }, () =>
    net
      .connect(port, '127.0.0.1')
      .on('error', () => {})
      .resume(),
  )
  await Promise.race(many.map((socket) => once(socket, 'close')))
  for (const socket of many) socket.destroy()
}
