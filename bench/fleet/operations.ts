import { setTimeout as pause } from 'node:timers/promises'
import type { Lab } from '../lab.ts'
import { requestOnce } from '../request.ts'
import { type RunningSidecar, tokenRequest } from '../sidecar.ts'
import type { OperationCosts } from './capacity.ts'
import { startSharing, type WindowsAt } from './fleet-sidecar.ts'
import { createMeter } from './meter.ts'
import type { Server } from './server.ts'

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
  const connections = ((await connectionsOf(server)) - 1) / 2
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

/**
 * Memory of one client's window (bytes): what the server gets back when it deletes those that are still open. The growth of its
 * memory meanwhile would also contain the buffers of connections, and windows that close.
 */
async function windowMemory(
  { client }: Server,
  request: (client: string) => Promise<unknown>,
): Promise<number> {
  for (let i = 1; i <= WINDOWS; i += 1) await request(`127.0.1.${i}`)
  const [windows = 0, freed = 0] = await client.sendCommand<number[]>(['EVAL', DELETE_WINDOWS, '0'])
  return freed / windows + SLOTS
}

/**
 * No other command runs, and nothing expires, during a script. Its first commands allocate what the later ones use again.
 * Reply: the number of windows that it deletes after that, and the memory that they had (bytes).
 */
const DELETE_WINDOWS = `
local function used()
  return tonumber(string.match(redis.call('INFO', 'memory'), 'used_memory:(%d+)'))
end
local keys = redis.call('KEYS', '*:w:api:*')
used()
redis.call('DEL', table.remove(keys))
local before = used()
for _, key in ipairs(keys) do
  redis.call('DEL', key)
end
return {#keys, before - used()}`

/**
 * A key that expires has a slot of 8 bytes in two hash tables (bytes). They double when they are full, so that each key has 1 to 2
 * slots in each. Deleting does not free them.
 */
const SLOTS = 2 * 1.5 * 8

async function ok(asking: ReturnType<typeof requestOnce>): Promise<string> {
  const { status, body } = await asking
  if (status !== 200) throw new Error(`a sidecar responds with ${status} ${body.slice(0, 200)}`)
  return body
}

function tokensIn(body: string): Tokens {
  const { access_token: access, refresh_token: refresh } = JSON.parse(body) as Record<string, string> // C4
  return { access: access ?? '', refresh: refresh ?? '' }
}
