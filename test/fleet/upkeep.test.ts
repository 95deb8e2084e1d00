import { expect, it } from 'vitest'
import { lookAfterTokens } from '../../src/fleet/upkeep.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { stillClock } from '../support/clock.ts'
import { scriptedStore, storeDown } from './scripted-store.ts'

const HOUR = 3_600_000
const YEARS = 56 * 365 * 24 * HOUR

it('H278 a step of the clock of the shared store is noticed, in both directions, and nothing else', async () => {
  const clock = stillClock()
  const steps: number[] = []
  let set = 0
  let delay = 0
  let isDown = false
  const store = scriptedStore(() => {
    if (isDown) throw storeDown()
    const time = clock.wall() + set
    // Both clocks have moved when this returns.
    void clock.advance(delay)
    return [String(time), 0, 0]
  })
  const unexpected = (what: unknown): never => {
    throw new Error(`unexpected: ${what}`)
  }
  const sweep = lookAfterTokens({
    store,
    clock,
    grantLasts: () => '',
    lifetimes: [HOUR, HOUR],
    onLost: unexpected,
    onClockSet: (by) => steps.push(by),
    onBug: unexpected,
  })
  async function look(): Promise<void> {
    await clock.advance(10_000)
    sweep()
    await nextTurn()
  }
  await look()
  for (const by of [HOUR, -HOUR, YEARS, -YEARS]) {
    set += by
    await look()
    await look()
  }
  expect(steps).toEqual([HOUR, -HOUR, YEARS, -YEARS])

  // A slow answer, a clock that is slewed, and the step of this machine's own clock are none.
  delay = 4_000
  await look()
  delay = 0
  await look()
  set += 1_000
  await look()
  clock.jumpWall(YEARS)
  set -= YEARS
  await look()
  expect(steps).toHaveLength(4)

  // It is noticed when the server answers again, too.
  isDown = true
  await look()
  set -= HOUR
  isDown = false
  await look()
  expect(steps.slice(4)).toEqual([-HOUR])
})
