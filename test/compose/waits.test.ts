import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Waits } from '../../src/compose/waits.ts'
import type { Entry } from '../../src/system/bounded-queue.ts'
import { stillClock } from '../support/clock.ts'

const HOUR = 3_600_000
const AT_MOST = { areAll: true, max: 4, isCeiling: false }

/** The waits of a queue that is played. */
function played() {
  const clock = stillClock()
  let entered = 7
  const waits = new Waits(clock, () => entered)
  return {
    clock,
    waits,
    told: (bound = AT_MOST) => waits.condition(bound),
    /** So many requests find a free place. */
    enter(count: number): void {
      entered += count
    },
    /** So many requests wait for `time` ms. */
    wait(count: number, time: number, end: Entry['kind'] = 'entered'): void {
      for (let i = 0; i < count; i += 1) {
        waits.over(time, end)
        if (end === 'entered') entered += 1
      }
    },
  }
}

describe('The waits for places', () => {
  it('are shares of the requests since the start, and begin with none', () => {
    const { told, enter, wait, clock } = played()
    expect(told()).toEqual({
      ...{ since: clock.wall(), requests: 0, waited: 0, refused: 0, p99: 0 },
      ...{ matters: false, wouldDo: null },
    })
    enter(90)
    wait(10, 40)
    expect(told()).toMatchObject({ requests: 100, waited: 10, refused: 0, matters: true, wouldDo: 8 })
    expect(told().p99).toBeGreaterThan(20)
    expect(told().p99).toBeLessThanOrEqual(50)
  })

  it('of less than one request in a hundred are 0 ms at p99', () => {
    const { told, enter, wait } = played()
    enter(1_000)
    wait(9, 5_000)
    expect(told()).toMatchObject({ waited: 9, p99: 0, matters: false, wouldDo: null })
    wait(11, 5_000)
    expect(told()).toMatchObject({ waited: 20, matters: true, wouldDo: 8 })
  })

  it('that are short, or of few requests, are no reason for more places', () => {
    const short = played()
    short.enter(100)
    short.wait(100, 19)
    expect(short.told()).toMatchObject({ waited: 100, matters: false, wouldDo: null })
    const few = played()
    few.wait(99, 5_000)
    expect(few.told()).toMatchObject({ waited: 99, matters: false, wouldDo: null })
    few.wait(1, 5_000)
    expect(few.told()).toMatchObject({ matters: true, wouldDo: 8 })
  })

  it.each([
    [{ areAll: true, max: 4, isCeiling: false }, 8],
    [{ areAll: true, max: 40, isCeiling: false }, 64],
    [{ areAll: true, max: 64, isCeiling: false }, null],
    [{ areAll: false, max: 4, isCeiling: false }, null],
    [{ areAll: true, max: 4, isCeiling: true }, null],
  ])('at %j: %s would do', (bound, wouldDo) => {
    const { told, wait } = played()
    wait(100, 1_000)
    expect(told(bound)).toMatchObject({ matters: true, wouldDo })
  })

  it('count requests that get no place: those that are refused, and those whose client left', () => {
    const { told, enter, wait } = played()
    enter(96)
    wait(2, 0, 'full')
    wait(1, 5_000, 'late')
    wait(1, 3, 'withdrawn')
    expect(told()).toMatchObject({ requests: 100, waited: 4, refused: 3, matters: true, wouldDo: 8 })
  })

  it('are a reason if one request in a hundred is refused, however short it waited', () => {
    const { told, enter, wait } = played()
    enter(99)
    wait(1, 0, 'full')
    expect(told()).toMatchObject({ p99: 0, matters: true, wouldDo: 8 })
    enter(1)
    expect(told()).toMatchObject({ p99: 0, matters: false, wouldDo: null })
  })

  it('that all are as long as a bound are no longer than it', () => {
    const { told, wait } = played()
    wait(100, 20)
    expect(told().p99).toBeGreaterThan(19)
    expect(told().p99).toBeLessThanOrEqual(20)
  })

  it('longer than the highest bound are as long as that', () => {
    const { told, wait } = played()
    wait(100, 3_000_000)
    expect(told().p99).toBe(60_000)
  })

  it('are those of a day, hour by hour, also if no request comes for a while', async () => {
    const { clock, told, enter, wait, waits } = played()
    const start = clock.wall()
    enter(5)
    wait(1, 10)
    await clock.advance(HOUR - 1)
    waits.look()
    await clock.advance(1)
    waits.look()
    enter(1)
    wait(2, 10)
    expect(told()).toMatchObject({ since: start, requests: 9, waited: 3 })
    await clock.leap(23 * HOUR - 1)
    expect(told()).toMatchObject({ since: start, requests: 9, waited: 3 })
    await clock.leap(1)
    expect(told()).toMatchObject({ since: start + HOUR, requests: 3, waited: 2 })
    await clock.leap(HOUR)
    expect(told()).toMatchObject({ since: start + 2 * HOUR, requests: 0, waited: 0 })
    wait(1, 10)
    await clock.leap(100 * HOUR)
    expect(told()).toMatchObject({ requests: 0, waited: 0 })
  })

  it('of any kind never are more than the requests, and p99 is no longer than the longest', () => {
    const event = fc.tuple(fc.constantFrom('entered', 'full', 'late', 'withdrawn'), fc.nat(50_000), fc.nat(9))
    fc.assert(
      fc.property(fc.array(event), (events) => {
        const { told, enter, wait } = played()
        for (const [end, time, free] of events) {
          enter(free)
          wait(1, time, end)
        }
        const { requests, waited, refused, p99 } = told()
        expect(waited).toBe(events.length)
        expect(requests).toBe(events.reduce((sum, [, , free]) => sum + free + 1, 0))
        expect(refused).toBeLessThanOrEqual(waited)
        // Within a bucket it is an estimate: the next bound is at most 2.5 times as high.
        const longest = Math.max(0.4, ...events.map(([, time]) => time))
        expect(p99).toBeLessThanOrEqual(3 * longest)
      }),
    )
  })
})
