import { once } from 'node:events'
import type http from 'node:http'
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { prepareSite, type Served, type Site } from '../process/serve.ts'
import { type Device, readBody, startDevice } from '../support/device.ts'
import { ping, rawSession } from '../support/http2-frames.ts'
import { freePort, startRedis } from '../support/redis.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

/** One sidecar with TLS and a token file, and a fleet of two with a shared store, under traffic of every kind. */
export interface Scene {
  /** The admin listeners: that of the single sidecar, and those of the fleet. */
  readonly alone: string
  readonly fleet: readonly string[]
  /** Makes each kind of event once. What is down in odd rounds is up in even ones. */
  round(): Promise<void>
}

/** Beyond it, connections to the single sidecar are closed at once. */
const MOST_CONNECTIONS = 60

export async function startScene(): Promise<Scene> {
  const [device, second, store] = [await flawedDevice(), await startDevice(), await startRedis()]
  acceptWebSockets(device)
  const admins = [await freePort(), await freePort(), await freePort()].map((port) => `127.0.0.1:${port}`)
  const site = await prepareSite({
    device,
    transport: 'h2',
    config: {
      admin: { address: admins[0] },
      listen: { max_connections: MOST_CONNECTIONS },
      limits: { api: { requests: 30 } },
      tokens: { capacity: 8 },
      upstream: { max_in_flight: 2, routes: { '/second': { url: second.url } } },
    },
  })
  const members = await Promise.all(
    admins.slice(1).map((address) =>
      prepareSite({
        device: second,
        config: {
          admin: { address },
          tokens: { store: `valkey://${store.at}` },
          limits: { store: 'shared' },
          store: { timeout: '200ms' },
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
    async round() {
      rounds += 1
      const broken = rounds % 2 === 1
      if (!broken) {
        await store.restart()
        spare = await startDevice(undefined, { port: Number(new URL(second.url).port) })
        fleet[1] = (await members[1]?.serve()) as Served // there are two members
      }
      await Promise.all([clients(alone, rounds), operator(site, alone, broken), ...fleet.map(member)])
      if (broken) {
        await Promise.all([store.kill(), spare.stop(), fleet[1]?.kill()])
        fleet.splice(1)
        await Promise.all([
          ...fleet.map(member),
          alone.request({ path: '/second', from: '127.0.0.20' }),
          pause(2_500),
        ])
      }
      await abuse(alone)
    },
  }
}

/** A device that answers `/slow` late, `/missing` with 404, `/cut` not at all, and `/odd` with malformed HTTP. */
function flawedDevice(): Promise<Device> {
  return startDevice(async (request: http.IncomingMessage, response: http.ServerResponse) => {
    await readBody(request)
    const path = request.url ?? ''
    if (path === '/cut') return request.socket.destroy()
    if (path === '/odd') return request.socket.end('HTTP/1.1 200 OK\nContent-Length: 2\n\nok')
    if (path === '/slow') await pause(400)
    response.statusCode = path === '/missing' ? 404 : 200
    response.end('x'.repeat(1_000))
  })
}

/** Clients of the single sidecar: honest ones, each round from another address, and one that asks too much. */
async function clients(alone: Served, round: number): Promise<void> {
  const from = `127.0.1.${round}`
  const logins = await Promise.all(Array.from({ length: 6 }, () => alone.grant()))
  const { access_token: token, refresh_token: refresh } = logins[5] ?? { access_token: '', refresh_token: '' }
  await alone.refresh(refresh)
  await Promise.all(Array.from({ length: 11 }, () => alone.login('guessed')))
  const { socket } = await openWebSocket(alone.url, { token })
  await Promise.all([
    ...['/', '/missing', '/cut', '/odd', '/second'].map((path) => alone.request({ token, path, from })),
    ...Array.from({ length: 6 }, () => alone.request({ token, path: '/slow', from })),
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

/** Reloads, a password file that is empty for a while, a revocation. */
async function operator(site: Site, alone: Served, broken: boolean): Promise<void> {
  site.configure({ limits: { api: { requests: broken ? 'many' : 30 } } })
  const seen = alone.logged(broken ? 'configuration not reloaded' : 'configuration reloaded').length
  alone.signal('SIGHUP')
  while (alone.logged(broken ? 'configuration not reloaded' : 'configuration reloaded').length === seen)
    await pause(20)
  await alone.revoke({ all: true })
}

/** A client of a member of the fleet. What it gets while the store or the device is down is no matter. */
async function member(sidecar: Served): Promise<void> {
  const response = await sidecar.login()
  const token = response.status === 200 ? String(response.json().access_token) : 'unknown'
  await Promise.all(Array.from({ length: 5 }, () => sidecar.request({ token })))
}

/** Clients that break the rules of TLS and HTTP/2, and one that opens too many connections. */
async function abuse({ url }: Served): Promise<void> {
  const port = Number(new URL(url).port)
  const plain = net.connect(port, '127.0.0.1')
  plain.on('error', () => {}).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(plain, 'close')
  const session = await rawSession(url)
  session.raw.socket.on('error', () => {})
  session.send(...Array.from({ length: 400 }, () => ping()))
  await session.closed
  const many = Array.from({ length: MOST_CONNECTIONS + 5 }, () =>
    net.connect(port, '127.0.0.1').on('error', () => {}),
  )
  await Promise.race(many.map((socket) => once(socket, 'close')))
  for (const socket of many) socket.destroy()
}
