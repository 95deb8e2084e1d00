import { describe, expect, it } from 'vitest'
import { MODELS, type ModelName } from '../../bench/models/models.ts'
import type { DevicePlace } from '../../src/forward/device-places.ts'
import { Measure } from '../../src/forward/measure.ts'
import { RestartedMeasure } from './laws.ts'
import { type Run, simulate } from './simulation.ts'
import { work } from './work.ts'

const BOUNDS = { min: 1, max: 64 }
const HOUR = 3_600_000

/** Times vary by a fifth, as those of real devices do. */
const RUN: Run = { clients: 64, noise: 0.2, seed: 3, time: 60_000 }

/** How long it is simulated, where that differs: the device that crashes, and those that answer often. */
const TIMES: Partial<Record<ModelName, number>> = {
  crashes: 120_000,
  reloads: 120_000,
  fast: 9_000,
  page: 30_000,
  flash: 20_000,
}
/** The way to 64 places, one by one, is not measured (ms). */
const CLIMBS: Partial<Record<ModelName, number>> = { fast: 7_500, page: 10_000, flash: 9_000 }
/** Requests fail, whatever the bound is. */
const OUTAGES: ReadonlySet<ModelName> = new Set<ModelName>(['flash', 'reloads'])

/** A measure that has learned `limit` places. */
function learnedUpTo(limit: number): { readonly measure: Measure; readonly now: number } {
  const measure = new Measure({ min: 1, max: limit })
  const now = work(measure, { from: 1_000_000, rounds: 100, time: 20 })
  expect(measure.limit).toBe(limit)
  return { measure, now }
}

/** How many of twenty requests that hang have a place after two seconds. */
function placesOfHanging(measure: Measure, page: string, since: number): number {
  const places: DevicePlace[] = []
  for (let now = since; now - since < 2_000; ) {
    while (places.length < Math.min(20, measure.limit))
      places.push(measure.sent(page, places.length + 1, now))
    now += 50
    if (places.length < 20) measure.look(places.length, since, now)
  }
  return places.length
}

describe('The learned bound', () => {
  it.each([
    [7, []],
    [8, ['hangs', 'tried_again']],
  ])(
    'H200 a request in a new place is suspected to hang when %i later ones were answered: %j',
    (answers, expected) => {
      const reasons: string[] = []
      const measure = new Measure({ min: 1, max: 64 }, { onChange: (reason) => reasons.push(reason) })
      let now = work(measure, { from: 1_000_000, rounds: 5, time: 20 })
      const { limit } = measure
      const [first, ...others] = Array.from({ length: limit }, () => measure.sent('/', limit, now))
      now += 20
      for (const place of [first, ...others]) if (place !== undefined) measure.answered(place, now)
      reasons.length = 0
      const since = now
      measure.sent('/', limit + 1, since)
      if (first !== undefined) measure.left(first)
      for (let i = 0; i < answers; i += 1) {
        now += 80
        const place = measure.sent('/', limit, now - 20)
        measure.answered(place, now)
        measure.left(place)
      }
      measure.look(1, since, now)
      // Half a second, and eight times the usual time: no sign came, so the bound is as before.
      const acquitted = now + 500 + 8 * 20
      measure.look(1, since, acquitted - 1)
      expect(reasons).toEqual(expected.slice(0, 1))
      measure.look(1, since, acquitted)
      expect(reasons).toEqual(expected)
    },
  )

  it.each(Object.keys(MODELS) as ModelName[])('H198 is as good as the best fixed one: %s', (name) => {
    const { [name]: time = 60_000 } = TIMES
    const { [name]: from = 0 } = CLIMBS
    const best = simulate(
      name,
      { limit: MODELS[name].best },
      { ...RUN, ...(name === 'flash' ? { time, from } : { time: time - from }) },
    )
    const learned = simulate(name, new RestartedMeasure(), { ...RUN, time, from })
    expect(learned.throughput).toBeGreaterThan(0.9 * best.throughput)
    expect(learned.p99).toBeLessThan(1.5 * best.p99)
    expect(learned.crashedAt.length).toBeLessThanOrEqual(1)
    expect(learned.crashedAt.every((at) => at < 60_000)).toBe(true)
    if (!OUTAGES.has(name)) expect(learned.failed).toBe(0)
  })

  it('H198 doubles from 2 to 4 while the device keeps up; then one more is given when those so far have held', () => {
    const measure = new Measure(BOUNDS)
    const limits = [measure.limit]
    for (let now = 0; measure.limit < 64; ) {
      now = work(measure, { from: now, rounds: 1, time: 5 })
      if (limits.at(-1) !== measure.limit) limits.push(measure.limit)
    }
    expect(limits).toEqual([2, ...Array.from({ length: 61 }, (_, i) => i + 4)])
  })

  it('H199 stays when a page fails in places that have worked, over and over', () => {
    const { measure, now } = learnedUpTo(8)
    for (let i = 0; i < 100; i += 1) {
      const place = measure.sent('/broken', 8, now + i)
      measure.reset(8, now + i)
      measure.failed(place, now + i)
      measure.left(place)
    }
    expect(measure.limit).toBe(8)
    expect(measure.ceiling).toEqual({})
  })

  it('H199 stays when clients leave before a response', () => {
    const { measure, now } = learnedUpTo(8)
    for (let i = 0; i < 1000; i += 1) measure.left(measure.sent('/', 8, now + i))
    measure.look(8, now, now + 1000)
    expect(measure.limit).toBe(8)
  })

  it('H199 stays when one page takes long, among others that are fast', () => {
    const { measure, now } = learnedUpTo(8)
    const slow = measure.sent('/slow', 8, now)
    let time = now
    for (let i = 0; i < 400; i += 1) {
      const place = measure.sent('/', 8, time)
      time += 20
      measure.look(8, now, time)
      measure.answered(place, time)
      measure.left(place)
    }
    measure.answered(slow, time)
    expect(measure.limit).toBeGreaterThanOrEqual(4)
    expect(work(measure, { from: time, rounds: 60, time: 20 })).toBeGreaterThan(time)
    expect(measure.limit).toBe(8)
  })

  it('H199 stays when the device is off: a refusal counts only if it answers others', () => {
    const { measure, now } = learnedUpTo(8)
    for (let i = 0; i < 100; i += 1) measure.refused(8, now + i)
    expect(measure.limit).toBe(8)
    expect(measure.ceiling).toEqual({})
  })

  describe('The device had 16 places, has 8 now, and the bound is raised above', () => {
    /** All places have worked; the bound is 8, and an attempt with more begins. */
    function attempting(time = 20): { readonly measure: Measure; readonly now: number } {
      const measure = new Measure({ min: 1, max: 16 })
      let now = work(measure, { from: 0, rounds: 100, time })
      expect(measure.limit).toBe(16)
      for (let rounds = 0; measure.limit > 8 && rounds < 10; rounds += 1)
        now = work(measure, { from: now, rounds: 1, time: measure.limit > 8 ? 250 * time : time })
      for (let rounds = 0; measure.limit <= 8 && rounds < 1_000; rounds += 1)
        now = work(measure, { from: now, rounds: 1, time })
      expect(measure.limit).toBeGreaterThan(8)
      return { measure, now }
    }

    it('H198 one round of slow responses ends the attempt', () => {
      const { measure, now } = attempting()
      work(measure, { from: now, rounds: 1, time: 5_000 })
      expect(measure.limit).toBeLessThanOrEqual(8)
    })

    it.each([
      { time: 20, silence: 200 },
      { time: 100, silence: 800 },
    ])(
      'H198 a silence of $silence ms ends the attempt, if a response usually takes $time ms',
      ({ time, silence }) => {
        const { measure, now } = attempting(time)
        const level = measure.limit
        for (let i = 1; i <= level; i += 1) measure.sent('/', i, now)
        let at = now
        for (; measure.limit > 8 && at < now + 5_000; at += 1) measure.look(level, now, at + 1)
        expect(Math.abs(at - now - silence)).toBeLessThan(0.1 * silence)
      },
    )
  })

  it.each([
    { carried: 3, limit: 4 },
    { carried: 4, limit: 4 },
  ])(
    'H198 one more place than $carried, and a silence of 300 ms: then there are $limit',
    ({ carried, limit }) => {
      const measure = new Measure({ min: carried, max: 64 })
      let now = 0
      while (measure.limit <= carried) now = work(measure, { from: now, rounds: 1, time: 20 })
      expect(measure.limit).toBe(carried + 1)
      for (let level = 1; level <= measure.limit; level += 1) measure.sent('/', level, now)
      for (let at = now; at <= now + 300; at += 50) measure.look(carried + 1, now, at)
      expect(measure.limit).toBe(limit)
    },
  )

  it.each([
    { what: 'nothing is answered', answers: false, after: 500 },
    { what: 'all were answered, and the responses go on', answers: true, after: 200 },
  ])('H201 more places are given after $after ms in which $what', ({ answers, after }) => {
    const measure = new Measure(BOUNDS)
    const start = 1_000_000
    for (let level = 1; level <= measure.limit; level += 1) {
      const place = measure.sent('/', level, start)
      if (answers) measure.answered(place, start)
    }
    const { limit } = measure
    let now = start
    for (; measure.limit === limit && now < start + 5_000; now += 1) measure.look(limit, start, now + 1)
    expect(now - start).toBe(after)
  })

  it.each([
    { places: 7, after: 1_100 },
    { places: 8, after: 5_000 },
  ])(
    'H201 more than $places places are given after $after ms, if all have worked: many may bury a device',
    ({ places, after }) => {
      const measure = new Measure({ min: places, max: 64 })
      const start = work(measure, { from: 1_000_000, rounds: 1, time: 100 })
      expect(measure.limit).toBe(places)
      for (let level = 1; level <= places; level += 1) measure.sent('/', level, start)
      let now = start
      for (; measure.limit === places && now < start + 20_000; now += 1) measure.look(places, start, now + 1)
      expect(now - start).toBe(after)
    },
  )

  it.each([
    { ratio: 3, reasons: ['hangs'] },
    { ratio: 7, reasons: [] },
  ])(
    'H200 a request that gets no answer in a new place is $reasons, while others take $ratio times their usual time',
    ({ ratio, reasons }) => {
      const seen: string[] = []
      const measure = new Measure({ min: 4, max: 64 }, { onChange: (reason) => seen.push(reason) })
      let now = 0
      while (measure.limit < 5) now = work(measure, { from: now, rounds: 1, time: 20 })
      for (let level = 1; level <= 5; level += 1) measure.sent('/', level, now)
      const since = now
      const { limit } = measure
      while (now < since + 1_100 && measure.limit === limit) {
        const place = measure.sent('/', 4, now)
        now += 20 * ratio
        measure.answered(place, now)
        measure.left(place)
        measure.look(5, since, now)
      }
      expect(seen.filter((reason) => reason === 'hangs')).toEqual(reasons)
    },
  )

  it.each([
    { period: 900, limit: 1 },
    { period: 1_100, limit: undefined },
  ])(
    'H200 a device that refuses every $period ms, and answers meanwhile, has a ceiling of $limit',
    ({ period, limit }) => {
      const measure = new Measure(BOUNDS)
      for (let now = 0, refusals = 0; refusals < 4; refusals += 1) {
        const place = measure.sent('/', 1, now)
        now += period / 2
        measure.answered(place, now)
        measure.left(place)
        now += period / 2
        measure.refused(2, now)
      }
      expect(measure.ceiling.guess?.limit).toBe(limit)
    },
  )

  it('H200 three refusals in a new place are a ceiling, which is tried after 1 h, 2 h, and up to a day', () => {
    const measure = new Measure(BOUNDS)
    let now = 0
    const refuse = (): void => {
      for (let i = 0; i < 4; i += 1) {
        now += 5
        const place = measure.sent('/', measure.limit, now)
        measure.answered(place, now)
        measure.left(place)
        now += 5
        measure.refused(measure.limit, now)
      }
    }
    refuse()
    expect(measure.limit).toBe(1)
    const waits: number[] = []
    for (let i = 0; i < 7; i += 1) {
      const { until = 0, wait = 0 } = measure.ceiling.guess ?? {}
      waits.push(wait / HOUR)
      measure.look(1, now, until - 1)
      expect(measure.ceiling.guess?.limit).toBe(1)
      now = until
      measure.look(1, now, now)
      expect(measure.ceiling.guess?.limit).toBe(2)
      for (let tries = 0; measure.limit === 1 && tries < 100; tries += 1)
        now = work(measure, { from: now, rounds: 1, time: 20 })
      expect(measure.limit).toBe(2)
      refuse()
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 24, 24])
  })

  it('H200 two refusals in a new place are no ceiling yet', () => {
    const measure = new Measure(BOUNDS)
    for (let now = 0, refusals = 0; refusals < 4; refusals += 1) {
      const place = measure.sent('/', 1, now)
      now += 5
      measure.answered(place, now)
      measure.left(place)
      now += 5
      measure.refused(2, now)
      // The first one alone does not tell whether the device is there.
      expect(measure.ceiling.guess?.limit).toBe(refusals < 3 ? undefined : 1)
    }
  })

  it('H200 a refusal in a place that has worked halves no bound within a second of a strike, also if the strike left it', () => {
    const seen: string[] = []
    const measure = new Measure(BOUNDS, { onChange: (reason) => seen.push(reason) })
    let now = 0
    while (measure.limit < 5) now = work(measure, { from: now, rounds: 1, time: 20 })
    const answer = (): void => {
      const place = measure.sent('/', 4, now)
      now += 20
      measure.answered(place, now)
      measure.left(place)
    }
    const refuse = (level: number): void => {
      answer()
      measure.refused(level, now)
    }
    // The first refusal tells nothing, and the other two are strikes.
    for (let refusals = 0; refusals < 3; refusals += 1) refuse(5)
    const places = [1, 2, 3, 4, 5].map((level) => measure.sent('/', level, now))
    for (const place of places.slice(0, 4)) {
      measure.answered(place, now)
      measure.left(place)
    }
    const since = now
    for (; measure.limit === 5; measure.look(5, since, now)) answer()
    expect(measure.limit).toBe(4)
    now += 2_000
    measure.failed(places[4] ?? expect.fail('it has no place'), now)
    expect([measure.limit, measure.ceiling.guess?.limit]).toEqual([4, 4])
    const struck = now
    for (seen.length = 0; now < struck + 1_000; ) refuse(4)
    expect([measure.limit, seen]).toEqual([4, []])
    refuse(4)
    expect([measure.limit, seen]).toEqual([2, ['refused']])
  })

  it('H200 a ceiling from before a restart holds, and goes when the device has room above it', () => {
    const measure = new Measure(BOUNDS, {}, { guess: { limit: 4, until: HOUR, wait: HOUR } })
    const now = work(measure, { from: 0, rounds: 40, time: 20 })
    expect(measure.limit).toBe(4)
    measure.look(4, now, HOUR)
    work(measure, { from: HOUR, rounds: 200, time: 20 })
    expect(measure.ceiling).toEqual({})
    expect(measure.limit).toBeGreaterThan(16)
  })

  it('H201 twenty requests hang for a page that one request got quickly: all have places within two seconds', () => {
    const measure = new Measure(BOUNDS)
    const first = measure.sent('/', 1, 0)
    measure.answered(first, 15)
    measure.left(first)
    expect(placesOfHanging(measure, '/', 15)).toBe(20)
  })

  it.each([1, 2, 3, 4, 20])(
    'H201 twenty responses go on without an end, after %i rounds: all have places within five seconds',
    (rounds) => {
      const measure = new Measure(BOUNDS)
      const since = work(measure, { from: 0, rounds, time: 15 })
      let held = 0
      for (let now = since; now - since < 5_000; now += 50) {
        for (; held < Math.min(20, measure.limit); held += 1)
          measure.answered(measure.sent('/', held + 1, now), now + 15)
        if (held < 20) measure.look(held, since, now)
      }
      expect(held).toBe(20)
    },
  )

  it.each([
    { rounds: 0, time: 0, page: '/hangs' },
    ...[1, 20].flatMap((rounds) =>
      [5, 20, 1_000, 20_000].flatMap((time) => ['/hangs', '/'].map((page) => ({ rounds, time, page }))),
    ),
  ])(
    'H201 twenty requests for $page hang, after $rounds rounds for / of $time ms: all have places within two seconds',
    ({ rounds, time, page }) => {
      const measure = new Measure(BOUNDS)
      const now = rounds === 0 ? 0 : work(measure, { from: 0, rounds, time })
      expect(placesOfHanging(measure, page, now)).toBe(20)
    },
  )
})
