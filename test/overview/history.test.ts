import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Refusal } from '../../src/http/refusal.ts'
import { createHistory, type History, KEPT } from '../../src/overview/history.ts'
import type { Point } from '../../src/overview/model.ts'
import { createMetrics, type Metrics } from '../../src/record/metrics.ts'
import type { Clock } from '../../src/system/clock.ts'
import { exchangeRecord } from '../support/admitted.ts'
import { closeLater } from '../support/cleanup.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'

interface Recording {
  readonly history: History
  readonly metrics: Metrics
  readonly clock: MovableClock
  /** Requests end, then time passes and the timer fires. */
  second(requests?: number, elapsed?: number): void
  end(refusal: Refusal | undefined, duration?: number): void
}

function startRecording(): Recording {
  // The timer fires as the test lets it, also late.
  let fire = (): void => {}
  const every: Clock['every'] = (_time, f) => {
    fire = f
    return { cancel() {} }
  }
  const clock = { ...stillClock(), every }
  const metrics = createMetrics({ version: '0', node: '0' })
  const load = { inFlight: 3, queued: 2 }
  const history = createHistory({ clock, totals: metrics.totals, load: () => load })
  closeLater(() => history.close())
  const end = (refusal: Refusal | undefined, duration = 4): void =>
    metrics.exchange(exchangeRecord({ refusal, duration }))
  return {
    history,
    metrics,
    clock,
    end,
    second(requests = 0, elapsed = 1_000) {
      for (let i = 0; i < requests; i += 1) end(undefined)
      void clock.advance(elapsed)
      fire()
    },
  }
}

it('H148 a point has the requests, refusals, latencies and load of its second', () => {
  const { history, metrics, clock, end, second } = startRecording()
  second(2)
  end(undefined, 2)
  end({ kind: 'rate-limited', retryAfter: 1 }, 2)
  metrics.exchange(exchangeRecord({ status: 500, duration: 2 }))
  end({ kind: 'unauthorized', cause: 'missing' }, 2)
  end({ kind: 'unauthorized', cause: 'expired' }, 2)
  metrics.upstream(undefined).responded(40)
  metrics.upstream('/files/').tunnel(1)
  metrics.connections.connection('h2', 1)
  metrics.connections.connection('http/1.1', 1)
  second()
  const [before, point] = history.points(0)
  expect(before?.requests).toBe(2)
  expect(point).toEqual({
    time: clock.wall(),
    requests: 5,
    refusals: { rate_limited: 1, unauthorized: 2 },
    serverErrors: 1,
    client: { p50: expect.closeTo(1.75), p99: expect.closeTo(2.485) },
    device: { p50: expect.closeTo(37.5), p99: expect.closeTo(49.75) },
    inFlight: 3,
    queued: 2,
    connections: 2,
    tunnels: 1,
  })
  second()
  expect(history.points(point?.time ?? 0)).toMatchObject([
    { requests: 0, refusals: {}, client: null, device: null },
  ])
})

it('H148 listeners get each point until they are closed', () => {
  const { history, second } = startRecording()
  const heard: Point[] = []
  const listening = history.onPoint((point) => heard.push(point))
  second(1)
  second(2)
  listening.close()
  second(3)
  expect(heard).toEqual(history.points(0).slice(0, 2))
})

type Step = {
  readonly kind: 'second' | 'stopped' | 'asleep' | 'set'
  readonly requests: number
  readonly ms: number
}

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: steps('second', { min: 1_000, max: 1_999 }) },
  { weight: 1, arbitrary: steps('stopped', { min: 2_000, max: 100_000 }) },
  { weight: 1, arbitrary: steps('asleep', { min: 2_000, max: 10_000_000 }) },
  { weight: 1, arbitrary: steps('set', { min: -10_000_000, max: 0 }) },
)

function steps(kind: Step['kind'], ms: { readonly min: number; readonly max: number }): fc.Arbitrary<Step> {
  return fc.record({ kind: fc.constant(kind), requests: fc.nat(5), ms: fc.integer(ms) })
}

it('H148 a stopped second is missing with its counts, no second is invented, and times ascend by whichever clock moves', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (taken) => {
      const { history, clock, second } = startRecording()
      const expected: number[] = []
      for (const { kind, requests, ms } of taken) {
        // The machine sleeps, or its clock is set: the monotonic clock does not notice.
        if (kind === 'asleep' || kind === 'set') clock.jumpWall(ms + 0.3)
        second(requests, kind === 'second' || kind === 'stopped' ? ms : 1_000)
        if (kind !== 'stopped') expected.push(requests)
      }
      history.close()
      const points = history.points(0)
      expect(points.map(({ requests }) => requests)).toEqual(expected)
      const times = points.map(({ time }) => time)
      expect(times).toEqual([...new Set(times)].sort((a, b) => a - b))
      expect(times.filter((time) => !Number.isInteger(time))).toEqual([])
      if (taken.at(-1)?.kind !== 'stopped' && taken.length > 0)
        expect(times.at(-1)).toBe(Math.round(clock.wall()))
    }),
  )
})

it('H148 a sleep leaves a gap of its length', () => {
  const { history, clock, second } = startRecording()
  second(1)
  clock.jumpWall(3_600_000)
  second(1)
  const [before, after] = history.points(0)
  expect((after?.time ?? 0) - (before?.time ?? 0)).toBe(3_601_000)
})

it(`H148 the last ${KEPT} points are kept`, () => {
  const { history, second } = startRecording()
  for (let i = 0; i < KEPT + 10; i += 1) second(i % 3)
  const points = history.points(0)
  expect(points).toHaveLength(KEPT)
  expect(points[0]?.requests).toBe(10 % 3)
  expect(history.points(points.at(-3)?.time ?? 0)).toEqual(points.slice(-2))
})
