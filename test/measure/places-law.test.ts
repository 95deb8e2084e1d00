import { describe, expect, it } from 'vitest'
import { MODELS, type ModelName } from '../../bench/models/models.ts'
import type { DevicePlace } from '../../src/forward/device-places.ts'
import { PlacesLaw } from '../../src/forward/places-law.ts'
import { BY_DEFAULT, RestartedLaw } from './laws.ts'
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

/** A law that has learned `places` places. */
function learnedUpTo(places: number): { readonly law: PlacesLaw; readonly now: number } {
  const law = new PlacesLaw({ min: 1, max: places })
  const now = work(law, { from: 1_000_000, rounds: 100, time: 20 })
  expect(law.places).toBe(places)
  return { law, now }
}

/** How many of twenty requests that hang have a place after two seconds. */
function placesOfHanging(law: PlacesLaw, page: string, since: number): number {
  const places: DevicePlace[] = []
  for (let now = since; now - since < 2_000; ) {
    while (places.length < Math.min(20, law.places)) places.push(law.sent(page, places.length + 1, now))
    now += 50
    if (places.length < 20) law.look(places.length, since, now)
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
      const law = new PlacesLaw({ min: 1, max: 64 }, { onChange: (reason) => reasons.push(reason) })
      let now = work(law, { from: 1_000_000, rounds: 5, time: 20 })
      const { places } = law
      const [first, ...others] = Array.from({ length: places }, () => law.sent('/', places, now))
      now += 20
      for (const place of [first, ...others]) if (place !== undefined) law.answered(place, now)
      reasons.length = 0
      const since = now
      law.sent('/', places + 1, since)
      if (first !== undefined) law.left(first)
      for (let i = 0; i < answers; i += 1) {
        now += 80
        const place = law.sent('/', places, now - 20)
        law.answered(place, now)
        law.left(place)
      }
      law.look(1, since, now)
      // Half a second, and eight times the usual time: no sign came, so the bound is as before.
      const acquitted = now + 500 + 8 * 20
      law.look(1, since, acquitted - 1)
      expect(reasons).toEqual(expected.slice(0, 1))
      law.look(1, since, acquitted)
      expect(reasons).toEqual(expected)
    },
  )

  it.each(Object.keys(MODELS) as ModelName[])('H198 is as good as the best fixed one: %s', (name) => {
    const { [name]: time = 60_000 } = TIMES
    const { [name]: from = 0 } = CLIMBS
    const best = simulate(
      name,
      { places: MODELS[name].best },
      { ...RUN, ...(name === 'flash' ? { time, from } : { time: time - from }) },
    )
    const learned = simulate(name, new RestartedLaw(), { ...RUN, time, from })
    expect(learned.throughput).toBeGreaterThan(0.9 * best.throughput)
    expect(learned.p99).toBeLessThan(1.5 * best.p99)
    expect(learned.crashedAt.length).toBeLessThanOrEqual(1)
    expect(learned.crashedAt.every((at) => at < 60_000)).toBe(true)
    if (!OUTAGES.has(name)) expect(learned.failed).toBe(0)
  })

  it.each(['crashes', 'resets', 'reloads'] as const)(
    'C25 by default it finds out nothing that breaks a device which takes four: %s',
    (name) => {
      for (const seed of [3, 4, 5]) {
        const run = { ...RUN, seed, time: 60_000 }
        const { crashes, throughput } = simulate(name, new RestartedLaw(undefined, BY_DEFAULT), run)
        expect(crashes).toBe(0)
        expect(throughput).toBeGreaterThan(0.95 * simulate(name, { places: 4 }, run).throughput)
      }
    },
  )

  it('H198 doubles from 2 to 4 while the device keeps up; then one more is given when those so far have held', () => {
    const law = new PlacesLaw(BOUNDS)
    const limits = [law.places]
    for (let now = 0; law.places < 64; ) {
      now = work(law, { from: now, rounds: 1, time: 5 })
      if (limits.at(-1) !== law.places) limits.push(law.places)
    }
    expect(limits).toEqual([2, ...Array.from({ length: 61 }, (_, i) => i + 4)])
  })

  it('H199 stays when a page fails in places that have worked, over and over', () => {
    const { law, now } = learnedUpTo(8)
    for (let i = 0; i < 100; i += 1) {
      const place = law.sent('/broken', 8, now + i)
      law.reset(8, now + i)
      law.failed(place, now + i)
      law.left(place)
    }
    expect(law.places).toBe(8)
    expect(law.ceiling).toEqual({})
  })

  it('H199 stays when clients leave before a response', () => {
    const { law, now } = learnedUpTo(8)
    for (let i = 0; i < 1000; i += 1) law.left(law.sent('/', 8, now + i))
    law.look(8, now, now + 1000)
    expect(law.places).toBe(8)
  })

  it('H199 stays when one page takes long, among others that are fast', () => {
    const { law, now } = learnedUpTo(8)
    const slow = law.sent('/slow', 8, now)
    let time = now
    for (let i = 0; i < 400; i += 1) {
      const place = law.sent('/', 8, time)
      time += 20
      law.look(8, now, time)
      law.answered(place, time)
      law.left(place)
    }
    law.answered(slow, time)
    expect(law.places).toBeGreaterThanOrEqual(4)
    expect(work(law, { from: time, rounds: 60, time: 20 })).toBeGreaterThan(time)
    expect(law.places).toBe(8)
  })

  it('H199 stays when the device is off: a refusal counts only if it answers others', () => {
    const { law, now } = learnedUpTo(8)
    for (let i = 0; i < 100; i += 1) law.refused(8, now + i)
    expect(law.places).toBe(8)
    expect(law.ceiling).toEqual({})
  })

  describe('The device had 16 places, has 8 now, and the bound is raised above', () => {
    /** All places have worked; the bound is 8, and an attempt with more begins. */
    function attempting(time = 20): { readonly law: PlacesLaw; readonly now: number } {
      const law = new PlacesLaw({ min: 1, max: 16 })
      let now = work(law, { from: 0, rounds: 100, time })
      expect(law.places).toBe(16)
      for (let rounds = 0; law.places > 8 && rounds < 10; rounds += 1)
        now = work(law, { from: now, rounds: 1, time: law.places > 8 ? 250 * time : time })
      for (let rounds = 0; law.places <= 8 && rounds < 1_000; rounds += 1)
        now = work(law, { from: now, rounds: 1, time })
      expect(law.places).toBeGreaterThan(8)
      return { law, now }
    }

    it('H198 one round of slow responses ends the attempt', () => {
      const { law, now } = attempting()
      work(law, { from: now, rounds: 1, time: 5_000 })
      expect(law.places).toBeLessThanOrEqual(8)
    })

    it.each([
      { time: 20, silence: 200 },
      { time: 100, silence: 800 },
    ])(
      'H198 a silence of $silence ms ends the attempt, if a response usually takes $time ms',
      ({ time, silence }) => {
        const { law, now } = attempting(time)
        const level = law.places
        for (let i = 1; i <= level; i += 1) law.sent('/', i, now)
        let at = now
        for (; law.places > 8 && at < now + 5_000; at += 1) law.look(level, now, at + 1)
        expect(Math.abs(at - now - silence)).toBeLessThan(0.1 * silence)
      },
    )
  })

  it.each([
    { carried: 3, places: 4 },
    { carried: 4, places: 4 },
  ])(
    'H198 one more place than $carried, and a silence of 300 ms: then there are $places',
    ({ carried, places }) => {
      const law = new PlacesLaw({ min: carried, max: 64 })
      let now = 0
      while (law.places <= carried) now = work(law, { from: now, rounds: 1, time: 20 })
      expect(law.places).toBe(carried + 1)
      for (let level = 1; level <= law.places; level += 1) law.sent('/', level, now)
      for (let at = now; at <= now + 300; at += 50) law.look(carried + 1, now, at)
      expect(law.places).toBe(places)
    },
  )

  it.each([
    { what: 'nothing is answered', answers: false, after: 500 },
    { what: 'all were answered, and the responses go on', answers: true, after: 200 },
  ])('H201 more places are given after $after ms in which $what', ({ answers, after }) => {
    const law = new PlacesLaw(BOUNDS)
    const start = 1_000_000
    for (let level = 1; level <= law.places; level += 1) {
      const place = law.sent('/', level, start)
      if (answers) law.answered(place, start)
    }
    const { places } = law
    let now = start
    for (; law.places === places && now < start + 5_000; now += 1) law.look(places, start, now + 1)
    expect(now - start).toBe(after)
  })

  it.each([
    { places: 7, after: 1_100 },
    { places: 8, after: 5_000 },
  ])(
    'H201 more than $places places are given after $after ms, if all have worked: many may bury a device',
    ({ places, after }) => {
      const law = new PlacesLaw({ min: places, max: 64 })
      const start = work(law, { from: 1_000_000, rounds: 1, time: 100 })
      expect(law.places).toBe(places)
      for (let level = 1; level <= places; level += 1) law.sent('/', level, start)
      let now = start
      for (; law.places === places && now < start + 20_000; now += 1) law.look(places, start, now + 1)
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
      const law = new PlacesLaw({ min: 4, max: 64 }, { onChange: (reason) => seen.push(reason) })
      let now = 0
      while (law.places < 5) now = work(law, { from: now, rounds: 1, time: 20 })
      for (let level = 1; level <= 5; level += 1) law.sent('/', level, now)
      const since = now
      const { places } = law
      while (now < since + 1_100 && law.places === places) {
        const place = law.sent('/', 4, now)
        now += 20 * ratio
        law.answered(place, now)
        law.left(place)
        law.look(5, since, now)
      }
      expect(seen.filter((reason) => reason === 'hangs')).toEqual(reasons)
    },
  )

  it.each([
    { period: 900, places: 1 },
    { period: 1_100, places: undefined },
  ])(
    'H200 a device that refuses every $period ms, and answers meanwhile, has a ceiling of $places',
    ({ period, places }) => {
      const law = new PlacesLaw(BOUNDS)
      for (let now = 0, refusals = 0; refusals < 4; refusals += 1) {
        const place = law.sent('/', 1, now)
        now += period / 2
        law.answered(place, now)
        law.left(place)
        now += period / 2
        law.refused(2, now)
      }
      expect(law.ceiling.guess?.places).toBe(places)
    },
  )

  it('H200 three refusals in a new place are a ceiling, which is tried after 1 h, 2 h, and up to a day', () => {
    const law = new PlacesLaw(BOUNDS)
    let now = 0
    const refuse = (): void => {
      for (let i = 0; i < 4; i += 1) {
        now += 5
        const place = law.sent('/', law.places, now)
        law.answered(place, now)
        law.left(place)
        now += 5
        law.refused(law.places, now)
      }
    }
    refuse()
    expect(law.places).toBe(1)
    const waits: number[] = []
    for (let i = 0; i < 7; i += 1) {
      const { until = 0, wait = 0 } = law.ceiling.guess ?? {}
      waits.push(wait / HOUR)
      law.look(1, now, until - 1)
      expect(law.ceiling.guess?.places).toBe(1)
      now = until
      law.look(1, now, now)
      expect(law.ceiling.guess?.places).toBe(2)
      for (let tries = 0; law.places === 1 && tries < 100; tries += 1)
        now = work(law, { from: now, rounds: 1, time: 20 })
      expect(law.places).toBe(2)
      refuse()
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 24, 24])
  })

  it('H200 two refusals in a new place are no ceiling yet', () => {
    const law = new PlacesLaw(BOUNDS)
    for (let now = 0, refusals = 0; refusals < 4; refusals += 1) {
      const place = law.sent('/', 1, now)
      now += 5
      law.answered(place, now)
      law.left(place)
      now += 5
      law.refused(2, now)
      // The first one alone does not tell whether the device is there.
      expect(law.ceiling.guess?.places).toBe(refusals < 3 ? undefined : 1)
    }
  })

  it('H200 a refusal in a place that has worked halves no bound within a second of a strike, also if the strike left it', () => {
    const seen: string[] = []
    const law = new PlacesLaw(BOUNDS, { onChange: (reason) => seen.push(reason) })
    let now = 0
    while (law.places < 5) now = work(law, { from: now, rounds: 1, time: 20 })
    const answer = (): void => {
      const place = law.sent('/', 4, now)
      now += 20
      law.answered(place, now)
      law.left(place)
    }
    const refuse = (level: number): void => {
      answer()
      law.refused(level, now)
    }
    // The first refusal tells nothing, and the other two are strikes.
    for (let refusals = 0; refusals < 3; refusals += 1) refuse(5)
    const places = [1, 2, 3, 4, 5].map((level) => law.sent('/', level, now))
    for (const place of places.slice(0, 4)) {
      law.answered(place, now)
      law.left(place)
    }
    const since = now
    for (; law.places === 5; law.look(5, since, now)) answer()
    expect(law.places).toBe(4)
    now += 2_000
    law.failed(places[4] ?? expect.fail('it has no place'), now)
    expect([law.places, law.ceiling.guess?.places]).toEqual([4, 4])
    const struck = now
    for (seen.length = 0; now < struck + 1_000; ) refuse(4)
    expect([law.places, seen]).toEqual([4, []])
    refuse(4)
    expect([law.places, seen]).toEqual([2, ['refused']])
  })

  it('H200 a ceiling from before a restart holds, and goes when the device has room above it', () => {
    const law = new PlacesLaw(BOUNDS, {}, { guess: { places: 4, until: HOUR, wait: HOUR } })
    const now = work(law, { from: 0, rounds: 40, time: 20 })
    expect(law.places).toBe(4)
    law.look(4, now, HOUR)
    work(law, { from: HOUR, rounds: 200, time: 20 })
    expect(law.ceiling).toEqual({})
    expect(law.places).toBeGreaterThan(16)
  })

  it('H201 twenty requests hang for a page that one request got quickly: all have places within two seconds', () => {
    const law = new PlacesLaw(BOUNDS)
    const first = law.sent('/', 1, 0)
    law.answered(first, 15)
    law.left(first)
    expect(placesOfHanging(law, '/', 15)).toBe(20)
  })

  it.each([1, 2, 3, 4, 20])(
    'H201 twenty responses go on without an end, after %i rounds: all have places within five seconds',
    (rounds) => {
      const law = new PlacesLaw(BOUNDS)
      const since = work(law, { from: 0, rounds, time: 15 })
      let held = 0
      for (let now = since; now - since < 5_000; now += 50) {
        for (; held < Math.min(20, law.places); held += 1)
          law.answered(law.sent('/', held + 1, now), now + 15)
        if (held < 20) law.look(held, since, now)
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
      const law = new PlacesLaw(BOUNDS)
      const now = rounds === 0 ? 0 : work(law, { from: 0, rounds, time })
      expect(placesOfHanging(law, page, now)).toBe(20)
    },
  )
})
