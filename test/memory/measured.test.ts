import { pino } from 'pino'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type MemoryPlan, openMemory } from '../../src/compose/memory.ts'
import { stillClock } from '../support/clock.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const LIMIT = 32 * 1024 ** 2
const BOUND = { bytes: 128 * 1024 ** 2, by: 'the cgroup /a' }
const PLAN: MemoryPlan = {
  ...{ limit: LIMIT, bound: BOUND, bounds: [BOUND], unusable: [] },
  ...{ isGiven: false, isCapped: false },
}

/** The stage of a sidecar whose clients hold a part of their account, while the process uses a part of its memory. */
function stageWith(held: number, used: number): string | undefined {
  const log = pino({ level: 'silent' }, { write() {} })
  const memory = openMemory(PLAN, {
    ...{ clock: stillClock(), log, metrics: { shed() {} }, ownsProcess: true },
    inUse: () => used,
  })
  memory.watchPage(() => held * LIMIT)
  vi.advanceTimersByTime(2_000)
  const { stage } = memory.account
  memory.close()
  return stage
}

it('C26 what V8 and the C library keep after floods takes nothing from clients that hold little', () => {
  expect([0.5, 0.7, 0.78].map((used) => stageWith(0.1, used))).toEqual([undefined, undefined, undefined])
})

it('C26 a process that comes near its memory sheds, though its account is not full', () => {
  expect([0.83, 0.88].map((used) => stageWith(0.1, used))).toEqual(['answers', 'grants'])
})
