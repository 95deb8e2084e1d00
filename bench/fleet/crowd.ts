import type { SharedStore } from '../../src/fleet/shared-store.ts'
import type { IssuedTokens } from '../../src/tokens/mint.ts'
import { atEnd } from '../run-program.ts'
import { createMember, type Member, openStore } from './member.ts'
import type { Client, Server } from './server.ts'
import type { Meter, Usage } from './usage.ts'

/** Devices that are added together. */
const TOGETHER = 100

/** How the keys of a device of the crowd begin. */
const prefixOf = (device: number): string => `device-${device}`

/** Adds devices, each with its state and so many logins. All go over one connection. */
export async function addDevices(
  store: SharedStore,
  from: number,
  to: number,
  grants: number,
): Promise<void> {
  for (let at = from; at < to; at += TOGETHER) {
    const batch = Array.from({ length: Math.min(TOGETHER, to - at) }, (_, i) => at + i)
    await Promise.all(
      batch.map(async (device) => {
        const { run, runDurably, follow, close } = store
        const prefix = `{${prefixOf(device)}}:`
        const member = createMember({ prefix, run, runDurably, follow, close, up: true, trouble: undefined })
        for (let i = 0; i < grants; i += 1) await member.logIn()
      }),
    )
  }
}

/** Starts one sidecar for each of the first `count` devices. Each has its own connections, and ends with its figure. */
export async function startMembers(server: Server, count: number): Promise<Member[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, device) => {
      const member = createMember(await openStore(server, prefixOf(device)))
      atEnd(() => member.close())
      await member.follow()
      return member
    }),
  )
}

/** What one operation costs the server. A lookup asks for a token that another sidecar issued; `count` is a request in a shared window. */
export type CrowdCosts = Readonly<Record<'login' | 'refresh' | 'lookup' | 'revocation' | 'count', Usage>>

/**
 * What an operation costs when all members do it at the same time. The server finds many commands in each turn, as it does near its
 * capacity. A command that comes alone costs more, because it wakes the server up.
 */
export async function measureTogether(
  meter: Meter,
  members: readonly Member[],
  rounds: number,
): Promise<CrowdCosts> {
  const together = (operation: (member: Member, turn: number) => Promise<unknown>): Promise<Usage> =>
    meter(members.length * rounds, async () => {
      for (let round = 0; round < rounds; round += 1) {
        await Promise.all(members.map((member, i) => operation(member, round * members.length + i)))
      }
    })
  await useEveryScript(members)
  const issued: IssuedTokens[] = []
  const of = (turn: number): IssuedTokens => issued[turn] ?? NONE
  return {
    login: await together(async (member, turn) => {
      issued[turn] = await member.logIn()
    }),
    lookup: await together((member, turn) => member.lookUp(of(turn).accessToken)),
    refresh: await together((member, turn) => member.refresh(of(turn).refreshToken)),
    count: await together((member) => member.count(1)),
    revocation: await together((member, turn) => member.revoke(of(turn).refreshToken)),
  }
}

/** The first use of a script sends its whole text. */
async function useEveryScript([member]: readonly Member[]): Promise<void> {
  if (member === undefined) return
  const { accessToken, refreshToken } = await member.logIn()
  await member.lookUp(accessToken)
  await member.refresh(refreshToken)
  await member.count(1)
  await member.revoke(refreshToken)
}

const NONE: IssuedTokens = { grant: '', accessToken: '', refreshToken: '', expiresIn: 0 }

/** Clients whose windows are measured. */
const WINDOWS = 200

/**
 * Memory of one client's window (bytes): what the server gets back when it deletes those that are still open. The growth of its
 * memory meanwhile would also contain the buffers of connections, and windows that close.
 */
export async function windowMemory(client: Client, [member]: readonly Member[]): Promise<number> {
  for (let i = 1; i <= WINDOWS; i += 1) await member?.count(i)
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
