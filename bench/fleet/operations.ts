import { setTimeout as pause } from 'node:timers/promises'
import type { Lab } from '../lab.ts'
import { requestOnce } from '../request.ts'
import { type RunningSidecar, tokenRequest } from '../sidecar.ts'
import type { OperationCosts } from './capacity.ts'
import { startSharing, type WindowsAt } from './fleet-sidecar.ts'
import { createMeter } from './meter.ts'
import type { Server } from './server.ts'
import { readCounters } from './usage.ts'

/** Operations of each kind. One follows the other, so none shares a packet. */
const OPERATIONS = 300

const IDLE_SECONDS = 12.2

/** An idle sidecar waits for messages three times, two seconds each, and then reads the state (s). */
export const SHORTEST = 6.1

/** Clients whose windows are measured. */
const WINDOWS = 200

/** What real sidecars cost the server. */
export interface SidecarCosts {
  /** Each operation on its own. */
  readonly alone: OperationCosts
  /** Connections of one sidecar. */
  readonly connections: number
  /** Memory of a client's window (bytes). */
  readonly window: number
}

/** Runs each operation through real sidecars, one after the other. */
export async function measureOperations(lab: Lab, server: Server): Promise<SidecarCosts> {
  const { client } = server
  const times = Math.max(20, Math.round(OPERATIONS * lab.part))
  const seconds = Math.max(SHORTEST, IDLE_SECONDS * lab.part)
  const meter = await createMeter(client, seconds)
  const start = (prefix: string, windows: WindowsAt): Promise<RunningSidecar> =>
    startSharing(lab, server, { prefix, windows, core: lab.proxyCore })
  // Local windows: a login and a lookup are not counted at the server.
  const [first, second] = [await start('f3', 'local'), await start('f3', 'local')]
  const connections = ((await connectionsOf(server)) - 1) / 2

  const tokens: Tokens[] = []
  const login = await meter.cost(times, () => repeat(times, async () => tokens.push(await logIn(first.url))))
  const each = (run: (tokens: Tokens) => Promise<unknown>) => async (): Promise<void> => {
    for (const pair of tokens) await run(pair)
  }
  const lookup = await meter.cost(
    times,
    each(({ access }) => get(second.url, access)),
  )
  const refresh = await meter.cost(
    times,
    each((pair) => renew(first.url, pair.refresh)),
  )
  const revocation = await meter.cost(
    times,
    each(({ refresh: token }) => revoke(first.url, token)),
  )
  const idle = await meter.cost(2 * seconds, () => pause(seconds * 1000))
  await Promise.all([first.stop(), second.stop()])

  const counting = await start('f3-windows', 'shared')
  const { access } = await logIn(counting.url)
  await get(counting.url, access)
  const count = await meter.cost(times, () => repeat(times, () => get(counting.url, access)))
  const window = await windowMemory(server, (client) => get(counting.url, access, client))
  await counting.stop()
  return { window, alone: { login, refresh, lookup, revocation, count, idle }, connections }
}

interface Tokens {
  readonly access: string
  readonly refresh: string
}

async function repeat(times: number, run: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i += 1) await run()
}

async function connectionsOf({ client }: Server): Promise<number> {
  const text = await client.sendCommand<string>(['INFO', 'clients'])
  return Number(/^connected_clients:(\d+)/m.exec(text)?.[1])
}

async function logIn(url: string): Promise<Tokens> {
  return tokensIn(await ok(requestOnce(`${url}/oauth/token`, tokenRequest())))
}

async function renew(url: string, refresh: string): Promise<Tokens> {
  const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refresh }).toString()
  return tokensIn(await ok(requestOnce(`${url}/oauth/token`, { ...tokenRequest(), body })))
}

function revoke(url: string, token: string): Promise<string> {
  const body = new URLSearchParams({ token }).toString()
  return ok(requestOnce(`${url}/oauth/revoke`, { ...tokenRequest(), body }))
}

function get(url: string, token: string, localAddress = '127.0.0.1'): Promise<string> {
  return ok(requestOnce(url, { headers: { Authorization: `Bearer ${token}` }, localAddress }))
}

/** Bytes of one client's window. */
async function windowMemory(
  { client }: Server,
  request: (client: string) => Promise<unknown>,
): Promise<number> {
  const before = (await readCounters(client)).memory
  for (let i = 1; i <= WINDOWS; i += 1) await request(`127.0.1.${i}`)
  return ((await readCounters(client)).memory - before) / WINDOWS
}

async function ok(asking: ReturnType<typeof requestOnce>): Promise<string> {
  const { status, body } = await asking
  if (status !== 200) throw new Error(`a sidecar responds with ${status} ${body.slice(0, 200)}`)
  return body
}

function tokensIn(body: string): Tokens {
  const { access_token: access, refresh_token: refresh } = JSON.parse(body) as Record<string, string> // C4
  return { access: access ?? '', refresh: refresh ?? '' }
}
