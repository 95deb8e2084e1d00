import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import type { IssuedTokens } from '../../src/tokens/mint.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { type JournaledStore, openJournaledStore } from './journaled-store.ts'
import { DAY, HOUR, POLICY, SECOND, WEEK } from './support.ts'

const MINUTE = 60 * SECOND
const state = (): string => join(temporaryDirectory(), 'state')

/** What a power cut leaves of a folder. */
function afterPowerCut(dir: string): string {
  const copy = state()
  cpSync(dir, copy, { recursive: true })
  return copy
}

/** Sets the wall clock to 1970, where a board without a battery starts. */
function startIn1970(clock: MovableClock): void {
  clock.jumpWall(20 * SECOND - clock.wall())
}

const lives = ({ store }: JournaledStore, { accessToken }: IssuedTokens): boolean =>
  store.identify(accessToken).kind === 'valid'
const refreshes = ({ store }: JournaledStore, { refreshToken }: IssuedTokens): boolean =>
  store.refresh(refreshToken) !== undefined

describe('H271 a board whose clock starts in 1970', () => {
  it('keeps a login from before the step over a restart, with its hour', () => {
    const dir = state()
    const clock = stillClock()
    const today = clock.wall()
    startIn1970(clock)
    const before = openJournaledStore(dir, { clock })
    const issued = before.store.issue('a', 'password')
    clock.advance(10 * MINUTE)
    clock.jumpWall(today + 10 * MINUTE - clock.wall())
    before.store.sweep()
    const copy = afterPowerCut(dir)
    clock.advance(HOUR - 10 * MINUTE - 1)
    const after = openJournaledStore(copy, { clock })
    expect(lives(after, issued)).toBe(true)
    clock.advance(1)
    expect(lives(after, issued)).toBe(false)
    expect(after.store.grants()).toMatchObject([{ issuedAt: today, expiresAt: today + WEEK }])
  })

  it('C7 ends a login of last week when the clock is set, at once and for good', () => {
    const dir = state()
    const clock = stillClock()
    const first = openJournaledStore(dir, { clock })
    const old = first.store.issue('a', 'password')
    first.journal.close()
    const today = clock.wall() + 8 * DAY
    startIn1970(clock)
    const { store, journal } = openJournaledStore(dir, { clock })
    clock.jumpWall(today - clock.wall())
    expect(store.refresh(old.refreshToken)).toBeUndefined()
    expect(store.grants()).toEqual([])
    journal.close()
    expect(refreshes(openJournaledStore(dir, { clock }), old)).toBe(false)
  })

  it('C7 gives a login the time of one life in all, however often it starts', () => {
    const dir = state()
    const clock = stillClock()
    const first = openJournaledStore(dir, { clock })
    const old = first.store.issue('a', 'password')
    first.journal.close()
    let days = 0
    for (; days < 20; days++) {
      startIn1970(clock)
      const run = openJournaledStore(dir, { clock })
      const isLive = run.store.counts().refresh === 1
      clock.advance(DAY)
      run.store.sweep()
      run.journal.close()
      if (!isLive) break
    }
    expect(days).toBe(7)
    expect(refreshes(openJournaledStore(dir, { clock }), old)).toBe(false)
  })

  it.each([
    ['after a minute', MINUTE],
    ['before the first sweep', 0],
  ])('C7 counts ten minutes for a run that a power cut ends %s', (_when, ran) => {
    let dir = state()
    const clock = stillClock()
    const first = openJournaledStore(dir, { clock })
    const old = first.store.issue('a', 'password')
    first.journal.close()
    let starts = 0
    for (; starts < 20; starts++) {
      startIn1970(clock)
      const run = openJournaledStore(dir, { clock })
      clock.advance(ran)
      if (ran > 0) run.store.sweep()
      if (!lives(run, old)) break
      dir = afterPowerCut(dir)
    }
    expect(starts).toBe(6)
  })

  it('C7 counts what a run took that was stopped in order, to the minute', () => {
    const dir = state()
    const clock = stillClock()
    const first = openJournaledStore(dir, { clock })
    const old = first.store.issue('a', 'password')
    clock.advance(HOUR / 2)
    first.journal.close()
    let runs = 0
    for (; runs < 100; runs++) {
      startIn1970(clock)
      const run = openJournaledStore(dir, { clock })
      if (!lives(run, old)) break
      clock.advance(MINUTE)
      run.journal.close()
    }
    expect(runs).toBe(30)
  })

  it('C6 gives a retry the same pair if the clock is set within its grace', () => {
    const dir = state()
    const clock = stillClock()
    const first = openJournaledStore(dir, { clock, rotateRefresh: true })
    const old = first.store.issue('a', 'password')
    first.journal.close()
    const today = clock.wall() + DAY
    startIn1970(clock)
    clock.advance(SECOND)
    const { store } = openJournaledStore(dir, { clock, rotateRefresh: true })
    clock.advance(SECOND)
    const pair = store.refresh(old.refreshToken)
    clock.advance(SECOND)
    clock.jumpWall(today - clock.wall())
    store.sweep()
    expect(store.refresh(old.refreshToken)).toEqual(pair)
    // A restart has lost the pair, and not when the grace ends.
    expect(refreshes(openJournaledStore(afterPowerCut(dir), { clock, rotateRefresh: true }), old)).toBe(true)
    clock.advance(9 * SECOND - 1)
    expect(store.refresh(old.refreshToken)).toEqual(pair)
    clock.advance(1)
    expect(store.refresh(old.refreshToken)).toBeUndefined()
  })

  it('writes a login by the last known time until the clock is set', () => {
    const dir = state()
    const clock = stillClock()
    const first = openJournaledStore(dir, { clock })
    first.store.issue('a', 'password')
    first.journal.close()
    startIn1970(clock)
    const second = openJournaledStore(dir, { clock })
    const issued = second.store.issue('a', 'password')
    second.journal.close()
    startIn1970(clock)
    expect(lives(openJournaledStore(dir, { clock }), issued)).toBe(true)
  })
})

it('the last known time is written once an hour, every ten minutes while the clock has lost it, and not without tokens', () => {
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
  closeLater(() => void exec.mockRestore())
  const clock = stillClock()
  /** How often a store writes in three hours in which nothing happens. */
  function writesOf({ store }: JournaledStore): number {
    exec.mockClear()
    for (let minute = 0; minute < 180; minute += 1) {
      clock.advance(MINUTE)
      store.sweep()
    }
    return exec.mock.calls.filter(([statement]) => statement.includes('BEGIN IMMEDIATE')).length
  }
  const dir = state()
  const policy = { clock, accessLifetime: WEEK }
  const first = openJournaledStore(dir, policy)
  expect(writesOf(first)).toBe(0)
  first.store.issue('a', 'password')
  expect(writesOf(first)).toBe(3)
  first.journal.close()
  startIn1970(clock)
  expect(writesOf(openJournaledStore(dir, policy))).toBe(18)
})

it('H311 ends a login in time after a reload that bounds logins in the second in which the clock is set', () => {
  const dir = state()
  const clock = stillClock()
  const first = openJournaledStore(dir, { clock })
  const old = first.store.issue('a', 'password')
  first.journal.close()
  const { store, journal } = openJournaledStore(dir, { clock })
  clock.jumpWall(DAY)
  store.applyPolicy({ ...POLICY, grantLifetime: 3 * DAY })
  journal.close()
  clock.advance(2 * DAY - 1)
  const copy = afterPowerCut(dir)
  expect(openJournaledStore(copy, { clock }).store.counts().refresh).toBe(1)
  clock.advance(1)
  expect(refreshes(openJournaledStore(dir, { clock, grantLifetime: 3 * DAY }), old)).toBe(false)
})

it('H271 a clock that was ahead and is set back costs nothing that lives', () => {
  const dir = state()
  const clock = stillClock()
  const first = openJournaledStore(dir, { clock })
  const old = first.store.issue('a', 'password')
  first.journal.close()
  clock.jumpWall(5 * DAY)
  const { store, journal } = openJournaledStore(dir, { clock })
  const issued = store.issue('b', 'password')
  clock.jumpWall(-5 * DAY)
  store.sweep()
  journal.close()
  const third = openJournaledStore(dir, { clock })
  expect(lives(third, issued)).toBe(true)
  clock.advance(WEEK - SECOND)
  expect(refreshes(third, old)).toBe(true)
  clock.advance(SECOND)
  expect(refreshes(third, old)).toBe(false)
})

it('H271 the suspend of a machine, and a drift, write nothing', () => {
  const dir = state()
  const clock = stillClock()
  let suspended = 0
  const uptime = (): number => (clock.monotonic() + suspended) / SECOND
  const { store } = openJournaledStore(dir, { clock, uptime })
  store.issue('a', 'password')
  const log = (): Buffer => readFileSync(join(dir, 'tokens.db-wal'))
  const before = log()
  const look = (): Buffer => {
    store.sweep()
    return log()
  }
  suspended += 10 * MINUTE
  clock.jumpWall(10 * MINUTE)
  expect(look().equals(before)).toBe(true)
  for (let second = 0; second < 60; second++) {
    clock.jumpWall(100)
    expect(look().equals(before)).toBe(true)
  }
  clock.jumpWall(10 * MINUTE)
  expect(look().equals(before)).toBe(false)
})

type Move =
  | { readonly do: 'login' | 'refresh' | 'revoke' }
  | { readonly do: 'pass' | 'step' | 'restart'; readonly ms: number }

const YEAR_OF_1970 = -56 * 365 * DAY
const moves = (steps: readonly number[]): fc.Arbitrary<Move[]> =>
  fc.array(
    fc.oneof(
      fc.record({ do: fc.constantFrom('login' as const, 'refresh' as const, 'revoke' as const) }),
      fc.record({
        do: fc.constant('pass' as const),
        ms: fc.constantFrom(SECOND, 30 * MINUTE, HOUR, 2 * DAY, WEEK),
      }),
      fc.record({ do: fc.constant('step' as const), ms: fc.constantFrom(...steps) }),
      fc.record({ do: fc.constant('restart' as const), ms: fc.constantFrom(0, MINUTE, 2 * HOUR, 3 * DAY) }),
    ),
    { minLength: 4, maxLength: 24 },
  )

interface Login {
  readonly tokens: IssuedTokens
  /** How long sidecars have run since then, and how much time has passed at all (ms). */
  ran: number
  passed: number
  isRestored: boolean
  over: boolean
}

/**
 * Plays moves on a real token file. Steps of the clock are relative to the right time.
 *
 * @param isRightAtStart the clock is right whenever a process starts or ends
 */
function play(
  moves: readonly Move[],
  isRightAtStart: boolean,
  check: (login: Login, ahead: number, isLive: boolean) => void,
) {
  const dir = state()
  const clock = stillClock()
  const logins: Login[] = []
  let off = 0
  /** How far the believed clock is ahead of the right time: 1970 is not believed. */
  let ahead = 0
  const set = (ms: number): void => {
    clock.jumpWall(ms - off)
    off = ms
    ahead = ms === YEAR_OF_1970 ? ahead : ms
  }
  const pass = (ms: number, runs: boolean): void => {
    clock.advance(ms)
    for (const login of logins) {
      login.passed += ms
      if (runs) login.ran += ms
    }
  }
  let run = openJournaledStore(dir, { clock })
  for (const move of moves) {
    if (move.do === 'login') {
      const tokens = run.store.issue('a', 'password')
      logins.push({ tokens, ran: 0, passed: 0, isRestored: false, over: false })
    } else if (move.do === 'pass') pass(move.ms, true)
    else if (move.do === 'step') set(move.ms)
    else if (move.do === 'restart') {
      if (isRightAtStart) set(0)
      run.store.sweep()
      run.journal.close()
      pass(move.ms, false)
      run = openJournaledStore(dir, { clock })
      for (const login of logins) login.isRestored = true
    } else {
      const login = logins.at(-1)
      if (login === undefined) continue
      if (move.do === 'refresh') run.store.refresh(login.tokens.refreshToken)
      else if (run.store.revoke({ token: login.tokens.refreshToken }, 'client') > 0) login.over = true
    }
    run.store.sweep()
    run.store.sweep()
    for (const login of logins) {
      const grant = run.store.grants().find(({ id }) => id === login.tokens.grant)
      const isLive = grant?.refreshTokens === 1
      check(login, ahead, isLive)
      if (!isLive) login.over = true
    }
  }
  run.journal.close()
}

it('H271 nothing live is lost: a clock that is right at each start and end may be set to anything between', () => {
  fc.assert(
    fc.property(moves([0, DAY, 3000 * DAY, YEAR_OF_1970]), (moves) =>
      play(moves, true, (login, ahead, isLive) => {
        const age = login.passed + (login.isRestored ? ahead : 0)
        expect(isLive).toBe(!login.over && age < WEEK)
      }),
    ),
    { numRuns: 20 },
  )
})

it('H271 C7 nothing dead comes back, and no login lives for more than its life of running time, whatever the clock does', () => {
  fc.assert(
    fc.property(moves([0, -DAY, -HOUR, DAY, 3000 * DAY, YEAR_OF_1970]), (moves) =>
      play(moves, false, (login, _, isLive) => {
        if (login.over || login.ran >= WEEK) expect(isLive).toBe(false)
      }),
    ),
    { numRuns: 20 },
  )
})
