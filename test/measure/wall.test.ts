import { describe, expect, it } from 'vitest'
import { isStrike } from '../../src/forward/bound.ts'
import { mostUnder } from '../../src/forward/ceilings.ts'
import { Measure } from '../../src/forward/measure.ts'
import { work } from './work.ts'

const HOUR = 3_600_000
const WEEK = 168 * HOUR

/** How the device goes away: it drops what is open, and then refuses, or drops, all that comes. */
interface Outage {
  readonly level: number
  readonly time?: number
  readonly resets?: boolean
}

/** The device goes away. Returns when it is back. */
function goAway(measure: Measure, from: number, { level, time = 2_000, resets = false }: Outage): number {
  const places = Array.from({ length: level }, (_, index) => measure.sent('/', index + 1, from))
  measure.reset(level, from)
  for (let now = from + 2; now < from + time; now += 50) {
    if (resets) measure.reset(level, now)
    else measure.refused(level, now)
  }
  for (const place of places) measure.left(place)
  return from + time
}

/** Carries four for a while, as the whole of its bound. */
function carrying(time = 20): {
  readonly measure: Measure
  readonly now: number
  readonly strikes: string[]
} {
  const strikes: string[] = []
  const measure: Measure = new Measure(
    { min: 1, max: 64 },
    {
      onCeiling: (cause) =>
        strikes.push(`${isStrike(cause) ? cause : 'no strike'} ${mostUnder(measure.ceiling)}`),
    },
  )
  let now = 1_000_000
  while (measure.limit < 5) now = work(measure, { from: now, rounds: 1, time })
  return { measure, now, strikes }
}

/** A measure that has found a wall at 4. */
function walled(): { readonly measure: Measure; readonly now: number; readonly strikes: string[] } {
  const all = carrying()
  const now = goAway(all.measure, all.now, { level: 5 })
  expect(all.measure.ceiling).toMatchObject({ wall: { kind: 'broke', limit: 4 } })
  return { ...all, now }
}

/** The same a week later, while one more place is tried. */
function tried(): { readonly measure: Measure; readonly now: number } {
  const { measure, now } = walled()
  measure.look(4, now, now + WEEK)
  expect(measure.ceiling).toEqual({ wall: { kind: 'tried', limit: 4 } })
  let later = now + WEEK
  for (let rounds = 0; measure.limit < 5 && rounds < 200; rounds += 1)
    later = work(measure, { from: later, rounds: 1, time: 20 })
  expect(measure.limit).toBe(5)
  return { measure, now: later }
}

describe('A wall', () => {
  it.each([false, true])(
    'H264 is what broke the device as soon as one more came to it; resets: %s',
    (resets) => {
      const { measure, now } = carrying()
      goAway(measure, now, { level: 5, resets })
      expect(measure.limit).toBe(4)
      const until = measure.ceiling.wall?.kind === 'broke' ? measure.ceiling.wall.until : 0
      expect(measure.ceiling).toEqual({ wall: { kind: 'broke', limit: 4, until } })
      expect(until - now).toBeGreaterThanOrEqual(WEEK)
      expect(until - now).toBeLessThan(WEEK + 1_000)
    },
  )

  it.each([
    { time: 20, after: 100 },
    { time: 200, after: 400 },
  ])(
    'H264 is certain $after ms after the device refused, if it usually takes $time ms',
    ({ time, after }) => {
      const { measure, now } = carrying(time)
      measure.sent('/', 5, now)
      let struck = 0
      let broke = 0
      for (let at = now; broke === 0 && at < now + 2_000; at += 1) {
        measure.refused(5, at)
        if (struck === 0 && measure.ceiling.guess !== undefined) struck = at
        if (measure.ceiling.wall !== undefined) broke = at
      }
      expect(broke - struck).toBe(after)
    },
  )

  it.each([
    { after: 1_000, wall: 4 },
    { after: 1_001, wall: undefined },
  ])('H264 is $wall if the device goes away $after ms after one more came to it', ({ after, wall }) => {
    const { measure, now } = carrying()
    const places = Array.from({ length: 5 }, (_, index) => measure.sent('/', index + 1, now))
    measure.reset(5, now + after - 2)
    for (let at = now + after; at < now + 3_000; at += 50) measure.refused(5, at)
    for (const place of places) measure.left(place)
    if (wall === undefined) expect(measure.ceiling).toMatchObject({ guess: { limit: 4, wait: HOUR } })
    expect(measure.ceiling.wall?.limit).toBe(wall)
  })

  it('H264 is none after twenty answers at one place, and a power cut while two requests were there', () => {
    const measure = new Measure({ min: 1, max: 64 })
    let now = 1_000_000
    for (let i = 0; i < 20; i += 1) {
      const place = measure.sent('/', 1, now)
      now += 20
      measure.answered(place, now)
      measure.left(place)
    }
    const back = goAway(measure, now, { level: 2 })
    expect(measure.ceiling.wall).toBeUndefined()
    measure.look(1, back, now + HOUR + 1_000)
    expect(mostUnder(measure.ceiling)).toBe(2)
  })

  it.each([
    ['is at the device', 0],
    ['has just left it', 900],
  ])('H264 is none while a request that may change the device %s', (_, ago) => {
    const { measure, now } = carrying()
    measure.changing(1, now - 2_000)
    if (ago > 0) measure.changing(-1, now - ago)
    goAway(measure, now, { level: 5 })
    expect(measure.ceiling).toMatchObject({ guess: { limit: 4 } })
    expect(measure.ceiling.wall).toBeUndefined()
  })

  it('H264 is none if the device only refuses, and answers meanwhile', () => {
    const { measure, now } = carrying()
    let at = now
    for (let i = 0; i < 4; i += 1) {
      const place = measure.sent('/', 4, at)
      measure.answered(place, at + 20)
      measure.left(place)
      at += 40
      measure.refused(5, at)
    }
    expect(measure.ceiling).toMatchObject({ guess: { limit: 4, wait: HOUR } })
    expect(measure.ceiling.wall).toBeUndefined()
  })

  it('H264 is what broke the device as soon as one more connection was opened, also if its request has ended', () => {
    const { measure, now } = carrying()
    measure.opens(5, now)
    goAway(measure, now, { level: 4 })
    expect(measure.ceiling).toMatchObject({ wall: { kind: 'broke', limit: 4 } })
  })

  it('H264 is tried once after a week, and not an hour later; if it works, nothing is known', () => {
    const { measure, now } = walled()
    for (let at = now; at < now + WEEK - 10_000; at += HOUR) measure.look(4, now, at)
    expect(measure.limit).toBe(4)
    const more = tried()
    const at = work(more.measure, { from: more.now, rounds: 20, time: 20 })
    expect(more.measure.ceiling).toEqual({})
    work(more.measure, { from: at, rounds: 200, time: 20 })
    expect(more.measure.limit).toBeGreaterThan(8)
  })

  it('H264 that breaks the device again is not tried by itself any more', () => {
    const { measure, now } = tried()
    const back = goAway(measure, now, { level: 5 })
    expect(measure.ceiling).toEqual({ wall: { kind: 'barred', limit: 4 } })
    for (let week = 1; week < 100; week += 1) measure.look(4, back, back + week * WEEK)
    work(measure, { from: back + 100 * WEEK, rounds: 100, time: 20 })
    expect(measure.limit).toBeLessThanOrEqual(4)
    expect(measure.ceiling).toEqual({ wall: { kind: 'barred', limit: 4 } })
  })

  it('H264 becomes a guess after an outage with no more than its number; its own outage is none', () => {
    const { measure, now } = walled()
    let at = goAway(measure, now, { level: 4 })
    expect(measure.ceiling.wall?.kind).toBe('broke')
    at = work(measure, { from: at, rounds: 4, time: 20 })
    goAway(measure, at, { level: 3, time: 900 })
    expect(measure.ceiling.wall?.kind).toBe('broke')
    at = work(measure, { from: at + 900, rounds: 4, time: 20 })
    goAway(measure, at, { level: 3 })
    expect(measure.ceiling).toMatchObject({ guess: { limit: 4, wait: HOUR } })
    expect(measure.ceiling.wall).toBeUndefined()
  })

  it('H264 becomes a guess after a later outage with as many as its number', () => {
    const { measure, now } = walled()
    goAway(measure, work(measure, { from: now, rounds: 4, time: 20 }), { level: 4 })
    expect(measure.ceiling).toMatchObject({ guess: { limit: 4, wait: HOUR } })
    expect(measure.ceiling.wall).toBeUndefined()
  })

  it('H279 has the times that it has by a wall clock that was set', () => {
    const { measure } = walled()
    const ceiling = { wall: { kind: 'broke', limit: 4, until: 5 } } as const
    measure.retime(ceiling)
    expect(measure.ceiling).toEqual(ceiling)
  })

  it('H267 is forgotten when the operator says so, and approached place by place', () => {
    const { measure, now } = tried()
    const back = goAway(measure, now, { level: 5 })
    measure.forget()
    expect(measure.ceiling).toEqual({})
    let at = back
    for (let rounds = 0; measure.limit < 5 && rounds < 200; rounds += 1)
      at = work(measure, { from: at, rounds: 1, time: 20 })
    expect(measure.limit).toBe(5)
    goAway(measure, at, { level: 5 })
    expect(measure.ceiling).toMatchObject({ wall: { kind: 'broke', limit: 4 } })
  })
})

describe('Each strike', () => {
  it('H263 is reported, also if the bound stays: first as a guess, then as what it is', () => {
    const all = walled()
    expect(all.strikes).toEqual(['refused 4', 'refused 4'])
    const limit = all.measure.limit
    let at = all.now
    all.measure.look(4, at, at + WEEK)
    at += WEEK
    for (let rounds = 0; all.measure.limit < 5 && rounds < 200; rounds += 1)
      at = work(all.measure, { from: at, rounds: 1, time: 20 })
    goAway(all.measure, at, { level: 5 })
    expect(all.measure.limit).toBe(limit)
    expect(all.strikes).toEqual(['refused 4', 'refused 4', 'no strike 5', 'refused 4', 'refused 4'])
  })
})

/** The wall of a fleet that leaves `limit` places to this sidecar. */
const shareOf = (limit: number) =>
  ({ wall: { kind: 'barred', limit, fleet: { sum: 9, version: 7 } } }) as const

describe('The bound, where nothing is known above 4', () => {
  /** The answers until a fifth place is given, and the time (ms), at a device that is asked for one after the other. */
  function untilFive(time: number): { readonly answers: number; readonly after: number } {
    const measure = new Measure({ min: 4, max: 64 })
    const start = 1_000_000
    let now = start
    let answers = 0
    for (; measure.limit < 5 && answers < 1_000; answers += 1) {
      const all = Array.from({ length: 4 }, (_, index) => measure.sent('/', index + 1, now))
      now += time
      for (const place of all) {
        place.level = 4
        measure.answered(place, now)
        measure.left(place)
      }
    }
    return { answers: 4 * answers, after: now - start }
  }

  it('H289 rises by one from the first place on in a fleet, whose other sidecars grow, too', () => {
    const measure = new Measure({ min: 1, max: 64, inFleet: true })
    const limits = [measure.limit]
    for (let now = 0; measure.limit < 8; ) {
      now = work(measure, { from: now, rounds: 1, time: 20 })
      if (limits.at(-1) !== measure.limit) limits.push(measure.limit)
    }
    expect(limits).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('H286 is never above the share of this sidecar in a fleet, and none before the others have made room', () => {
    const measure = new Measure({ min: 1, max: 64, inFleet: true })
    let now = work(measure, { from: 1_000_000, rounds: 400, time: 20 })
    expect(measure.limit).toBeGreaterThan(8)
    measure.share(shareOf(3), true, now)
    expect(measure.limit).toBe(3)
    now = work(measure, { from: now, rounds: 400, time: 20 })
    measure.look(3, now, now + 10_000)
    expect(measure.limit).toBe(3)
    measure.wait()
    expect(measure.limit).toBe(0)
    measure.look(0, now, now + 20_000)
    expect(measure.limit).toBe(0)
    measure.share(shareOf(5), false, now)
    expect(measure.limit).toBeGreaterThan(0)
    work(measure, { from: now, rounds: 400, time: 20 })
    expect(measure.limit).toBe(5)
  })

  it('H286 with a smaller share, what has worked above it counts no more', () => {
    const measure = new Measure({ min: 1, max: 64, inFleet: true })
    let now = work(measure, { from: 1_000_000, rounds: 400, time: 20 })
    expect(measure.carries(4)).toBe(true)
    measure.share(shareOf(3), true, now)
    expect([3, 4].map((limit) => measure.carries(limit))).toEqual([true, false])
    now = work(measure, { from: now + 2_000, rounds: 40, time: 20 })
    measure.share(shareOf(10), true, now)
    now = work(measure, { from: now, rounds: 3, time: 20 })
    expect(measure.limit).toBe(4)
    goAway(measure, now, { level: 4 })
    expect(measure.ceiling).toMatchObject({ wall: { kind: 'broke', limit: 3 } })
  })

  it('H286 a larger share is tried at once, also if more places were not worth a try for long', () => {
    const measure = new Measure({ min: 1, max: 64, inFleet: true })
    let now = 1_000_000
    const crowd = (): void => {
      now = work(measure, { from: now, rounds: 1, time: 20 * Math.max(1, measure.limit / 4) })
    }
    for (let round = 0; round < 300; round += 1) crowd()
    measure.share(shareOf(3), true, now)
    for (let round = 0; round < 3; round += 1) crowd()
    expect(measure.limit).toBe(3)
    measure.share(shareOf(10), true, now)
    for (let round = 0; round < 3; round += 1) crowd()
    expect(measure.limit).toBe(4)
  })

  it('H286 after a smaller share, one more place of a larger one is given when those before it have held', () => {
    const measure = new Measure({ min: 1, max: 64, inFleet: true })
    let now = 0
    const pass = (): void => {
      now = work(measure, { from: now, rounds: 1, time: 20 })
    }
    measure.share(shareOf(10), true, now)
    while (measure.limit < 10) pass()
    measure.share(shareOf(3), true, now)
    pass()
    expect(measure.limit).toBe(3)
    measure.share(shareOf(10), true, now)
    const limits = new Set<number>()
    while (measure.limit < 10) {
      pass()
      limits.add(measure.limit)
    }
    expect([...limits].filter((limit) => limit > 3)).toEqual([4, 5, 6, 7, 8, 9, 10])
  })

  it('H286 the same share, told again and again, changes nothing', () => {
    const limitsOf = (tells: boolean): number[] => {
      const measure = new Measure({ min: 1, max: 64, inFleet: true })
      const limits: number[] = []
      measure.share(shareOf(10), true, 0)
      for (let now = 0; limits.length < 400; limits.push(measure.limit)) {
        if (tells) measure.share(shareOf(10), false, now)
        now = work(measure, { from: now, rounds: 1, time: 20 * Math.max(1, measure.limit / 4) })
      }
      return limits
    }
    expect(limitsOf(true)).toEqual(limitsOf(false))
  })

  it.each([true, false])(
    'H286 answers to requests from before a word of the fleet show no room; another word: %s',
    (isNew) => {
      const measure = new Measure({ min: 1, max: 64, inFleet: true })
      let now = 1_000_000
      while (measure.limit < 3) now = work(measure, { from: now, rounds: 1, time: 400 })
      expect(measure.carries(3)).toBe(false)
      const places = Array.from({ length: 32 }, (_, i) => measure.sent('/', 3, now + 10 * i))
      measure.share(shareOf(10), isNew, now + 320)
      for (const [i, place] of places.entries()) measure.answered(place, now + 10 * i + 400)
      expect(measure.carries(3)).toBe(!isNew)
    },
  )

  it('H265 rises by one after 32 answers of those so far, over a tenth of a second', () => {
    expect(untilFive(20).answers).toBe(32)
    expect(untilFive(1)).toEqual({ answers: 404, after: 101 })
  })
})
