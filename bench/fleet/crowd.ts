import { setTimeout as pause } from 'node:timers/promises'
import type { SharedStore } from '../../src/store/shared-store.ts'
import type { IssuedTokens } from '../../src/tokens/token-contract.ts'
import type { OperationCosts } from './capacity.ts'
import { createMember, type Member, openStore } from './member.ts'
import type { Meter } from './meter.ts'
import type { Server } from './server.ts'
import type { Usage } from './usage.ts'

/** Devices that are added together. */
const TOGETHER = 100

/** How the keys of a device of the crowd begin. */
const prefixOf = (device: number): string => `device-${device}`

/** Adds devices, each with its state and so many logins. All go over one connection. */
export async function addDevices(
  store: SharedStore,
  { from, to, grants }: { readonly from: number; readonly to: number; readonly grants: number },
): Promise<void> {
  for (let at = from; at < to; at += TOGETHER) {
    const batch = Array.from({ length: Math.min(TOGETHER, to - at) }, (_, i) => at + i)
    await Promise.all(
      batch.map(async (device) => {
        const member = createMember(withPrefix(store, `{${prefixOf(device)}}:`))
        for (let i = 0; i < grants; i += 1) await member.logIn()
      }),
    )
  }
}

function withPrefix(store: SharedStore, prefix: string): SharedStore {
  return {
    prefix,
    run: store.run,
    runDurably: store.runDurably,
    follow: store.follow,
    up: true,
    trouble: undefined,
    close: async () => {},
  }
}

/** Starts one sidecar for each of the first `count` devices. Each has its own connections. */
export async function startMembers(server: Server, count: number): Promise<Member[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, device) => {
      const member = createMember(await openStore(server, prefixOf(device)))
      await member.follow()
      return member
    }),
  )
}

/** The costs of what a crowd does at the same time. */
export type CrowdCosts = Omit<OperationCosts, 'idle'>

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
    meter.cost(members.length * rounds, async () => {
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

const NONE: IssuedTokens = { accessToken: '', refreshToken: '', expiresIn: 0 }

/** What all members do in a second. */
export interface Pace {
  readonly logins: number
  readonly counts: number
}

/** Ticks per second. */
const TICKS = 20

/** Keeps up a pace for some seconds. Resolves with what was done, and how long it took (seconds). */
export async function keepPace(
  members: readonly Member[],
  pace: Pace,
  seconds: number,
): Promise<Pace & { readonly seconds: number }> {
  const begin = performance.now()
  let next = 0
  const some = (count: number): Member[] =>
    Array.from({ length: Math.round(count / TICKS) }, () => members[next++ % members.length] as Member) // there are some
  const done = { logins: 0, counts: 0 }
  for (let tick = 1; tick <= seconds * TICKS; tick += 1) {
    const [logins, counts] = [some(pace.logins), some(pace.counts)]
    await Promise.all([...logins.map((member) => member.logIn()), ...counts.map((member) => member.count(2))])
    done.logins += logins.length
    done.counts += counts.length
    await pause(Math.max(0, (tick * 1000) / TICKS - (performance.now() - begin)))
  }
  return { ...done, seconds: (performance.now() - begin) / 1000 }
}
