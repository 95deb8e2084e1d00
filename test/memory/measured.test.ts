import { expect, it, onTestFinished } from 'vitest'
import { type MemoryPlan, openMemory } from '../../src/compose/client-memory.ts'
import { openLogOn } from '../../src/record/log.ts'
import { stillClock } from '../support/clock.ts'

const LIMIT = 32 * 1024 ** 2
const BOUND = { bytes: 128 * 1024 ** 2, by: 'the cgroup /a' }
const PLAN: MemoryPlan = {
  ...{ limit: LIMIT, bound: BOUND, bounds: [BOUND], unusable: [] },
  ...{ isGiven: false, isCapped: false },
}

/** A sidecar whose clients hold a part of their account, while the process uses a part of its memory. Both may change. */
function openWith(held: number, used: number) {
  const parts = { held, used }
  const clock = stillClock()
  const memory = openMemory(PLAN, {
    ...openLogOn('silent', { write() {} }),
    ...{ clock, metrics: { shed() {} }, ownsProcess: true },
    inUse: () => parts.used,
  })
  memory.watchPage(() => parts.held * LIMIT)
  onTestFinished(() => memory[Symbol.dispose]())
  return { parts, clock, account: memory.account }
}

/** The stage of a sidecar whose clients hold a part of their account, while the process uses a part of its memory. */
async function stageWith(held: number, used: number): Promise<string | undefined> {
  const { clock, account } = openWith(held, used)
  await clock.advance(1_000)
  return account.stage
}

it('C26 what V8 and the C library keep after floods takes nothing from clients that hold little', async () => {
  for (const used of [0.5, 0.7, 0.78]) expect(await stageWith(0.1, used)).toBeUndefined()
})

it('C26 a process that comes near its memory sheds, though its account is not full', async () => {
  expect([await stageWith(0.1, 0.83), await stageWith(0.1, 0.88)]).toEqual(['answers', 'grants'])
})

it('C26 a process near its memory sheds no longer when its clients hold too little to shed', async () => {
  const { parts, clock, account } = openWith(0.1, 0.88)
  await clock.advance(1_000)
  expect(account.stage).toBe('grants')
  parts.held = 0.05
  await clock.advance(1_000)
  expect(account.stage).toBeUndefined()
})
