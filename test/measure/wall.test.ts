import { describe, expect, it } from 'vitest'
import { type CeilingCause, isStrike, mostUnder, nextAttempt } from '../../src/forward/ceiling.ts'
import { PlacesLaw } from '../../src/forward/places-law.ts'
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
function goAway(law: PlacesLaw, from: number, { level, time = 2_000, resets = false }: Outage): number {
  const places = Array.from({ length: level }, (_, index) => law.sent('/', index + 1, from))
  law.reset(level, from)
  for (let now = from + 2; now < from + time; now += 50) {
    if (resets) law.reset(level, now)
    else law.refused(level, now)
  }
  for (const place of places) law.left(place)
  return from + time
}

/** Carries four for a while, as the whole of its bound. */
function carrying(time = 20): {
  readonly law: PlacesLaw
  readonly now: number
  readonly strikes: string[]
  readonly changes: CeilingCause[]
} {
  const strikes: string[] = []
  const changes: CeilingCause[] = []
  const law: PlacesLaw = new PlacesLaw(
    { min: 1, max: 64 },
    {
      onCeiling(cause) {
        changes.push(cause)
        strikes.push(`${isStrike(cause) ? cause : 'no strike'} ${mostUnder(law.ceiling)}`)
      },
    },
  )
  let now = 1_000_000
  while (law.places < 5) now = work(law, { from: now, rounds: 1, time })
  return { law, now, strikes, changes }
}

/** A law that has found a wall at 4. */
function walled(): ReturnType<typeof carrying> {
  const all = carrying()
  const now = goAway(all.law, all.now, { level: 5 })
  expect(all.law.ceiling).toEqual({ wall: { places: 4 } })
  return { ...all, now }
}

describe('A wall', () => {
  it.each([false, true])(
    'H264 is what broke the device as soon as one more came to it; resets: %s',
    (resets) => {
      const { law, now } = carrying()
      goAway(law, now, { level: 5, resets })
      expect(law.places).toBe(4)
      expect(law.ceiling).toEqual({ wall: { places: 4 } })
    },
  )

  it.each([
    { time: 20, after: 100 },
    { time: 200, after: 400 },
  ])(
    'H264 is certain $after ms after the device refused, if it usually takes $time ms',
    ({ time, after }) => {
      const { law, now } = carrying(time)
      law.sent('/', 5, now)
      let struck = 0
      let broke = 0
      for (let at = now; broke === 0 && at < now + 2_000; at += 1) {
        law.refused(5, at)
        if (struck === 0 && law.ceiling.guess !== undefined) struck = at
        if (law.ceiling.wall !== undefined) broke = at
      }
      expect(broke - struck).toBe(after)
    },
  )

  it.each([
    { after: 1_000, wall: 4 },
    { after: 1_001, wall: undefined },
  ])('H264 is $wall if the device goes away $after ms after one more came to it', ({ after, wall }) => {
    const { law, now } = carrying()
    const places = Array.from({ length: 5 }, (_, index) => law.sent('/', index + 1, now))
    law.reset(5, now + after - 2)
    for (let at = now + after; at < now + 3_000; at += 50) law.refused(5, at)
    for (const place of places) law.left(place)
    if (wall === undefined) expect(law.ceiling).toMatchObject({ guess: { places: 4, wait: HOUR } })
    expect(law.ceiling.wall?.places).toBe(wall)
  })

  it('H264 is none after twenty answers at one place, and a power cut while two requests were there', () => {
    const law = new PlacesLaw({ min: 1, max: 64 })
    let now = 1_000_000
    for (let i = 0; i < 20; i += 1) {
      const place = law.sent('/', 1, now)
      now += 20
      law.answered(place, now)
      law.left(place)
    }
    const back = goAway(law, now, { level: 2 })
    expect(law.ceiling.wall).toBeUndefined()
    law.look(1, back, now + HOUR + 1_000)
    expect(mostUnder(law.ceiling)).toBe(2)
  })

  it.each([
    ['is at the device', 0],
    ['has just left it', 900],
  ])('H264 is none while a request that may change the device %s', (_, ago) => {
    const { law, now } = carrying()
    law.changing(1, now - 2_000)
    if (ago > 0) law.changing(-1, now - ago)
    goAway(law, now, { level: 5 })
    expect(law.ceiling).toMatchObject({ guess: { places: 4 } })
    expect(law.ceiling.wall).toBeUndefined()
  })

  it('H264 is none if the device only refuses, and answers meanwhile', () => {
    const { law, now } = carrying()
    let at = now
    for (let i = 0; i < 4; i += 1) {
      const place = law.sent('/', 4, at)
      law.answered(place, at + 20)
      law.left(place)
      at += 40
      law.refused(5, at)
    }
    expect(law.ceiling).toMatchObject({ guess: { places: 4, wait: HOUR } })
    expect(law.ceiling.wall).toBeUndefined()
  })

  it('H264 is what broke the device as soon as one more connection was opened, also if its request has ended', () => {
    const { law, now } = carrying()
    law.opens(5, now)
    goAway(law, now, { level: 4 })
    expect(law.ceiling).toMatchObject({ wall: { places: 4 } })
  })

  it('H264 is never tried again by itself: not in two years under load, nor after a restart', () => {
    const { law, now } = walled()
    let at = now
    let present = law
    for (let week = 0; week < 104; week += 1) {
      if (week === 52) present = new PlacesLaw({ min: 1, max: 64 }, {}, law.ceiling)
      for (let hour = 0; hour < 168; hour += 24) present.look(4, at, at + hour * HOUR)
      at = work(present, { from: at + WEEK, rounds: 10, time: 20 })
      expect(present.places).toBeLessThanOrEqual(4)
    }
    expect(present.ceiling).toEqual({ wall: { places: 4 } })
    expect(nextAttempt(present.ceiling)).toBeUndefined()
  })

  it('H264 is what breaks the device in an attempt above a guess, also beside a request that may change it', () => {
    const { law, now } = carrying()
    law.changing(1, now - 2_000)
    const back = goAway(law, now, { level: 5 })
    expect(law.ceiling).toMatchObject({ guess: { places: 4 } })
    law.look(4, back, back + HOUR + 1_000)
    let at = back + HOUR + 1_000
    for (let rounds = 0; law.places < 5 && rounds < 200; rounds += 1)
      at = work(law, { from: at, rounds: 1, time: 20 })
    expect(law.places).toBe(5)
    goAway(law, at, { level: 5 })
    expect(law.ceiling).toEqual({ wall: { places: 4 } })
  })

  it('H264 is doubted after an outage with no more than its number, and stays; its own outage is none', () => {
    const { law, now } = walled()
    let at = goAway(law, now, { level: 4 })
    at = work(law, { from: at, rounds: 4, time: 20 })
    goAway(law, at, { level: 3, time: 900 })
    expect(law.ceiling).toEqual({ wall: { places: 4 } })
    at = work(law, { from: at + 900, rounds: 4, time: 20 })
    goAway(law, at, { level: 3 })
    expect(law.ceiling).toEqual({ wall: { places: 4, doubted: true } })
    law.look(4, at, at + WEEK)
    work(law, { from: at + WEEK, rounds: 100, time: 20 })
    expect(law.places).toBe(4)
  })

  it('H264 is doubted, once, after a later outage with as many as its number', () => {
    const { law, now, changes } = walled()
    changes.length = 0
    let at = goAway(law, work(law, { from: now, rounds: 4, time: 20 }), { level: 4 })
    expect(law.ceiling.wall).toEqual({ places: 4, doubted: true })
    at = work(law, { from: at, rounds: 4, time: 20 })
    goAway(law, at, { level: 4 })
    expect(changes.filter((cause) => cause === 'doubted')).toEqual(['doubted'])
  })

  it('H279 a ceiling has the times that it has by a wall clock that was set', () => {
    const { law } = walled()
    const ceiling = { guess: { places: 4, until: 5, wait: HOUR } }
    law.retime(ceiling)
    expect(law.ceiling).toEqual(ceiling)
  })

  it('H267 is forgotten when the operator says so, and approached place by place', () => {
    const { law, now: back } = walled()
    law.forget()
    expect(law.ceiling).toEqual({})
    let at = back
    for (let rounds = 0; law.places < 5 && rounds < 200; rounds += 1)
      at = work(law, { from: at, rounds: 1, time: 20 })
    expect(law.places).toBe(5)
    goAway(law, at, { level: 5 })
    expect(law.ceiling).toMatchObject({ wall: { places: 4 } })
  })
})

describe('Each strike', () => {
  it('H263 is reported, also if the bound stays: first as a guess, then as what it is', () => {
    const all = walled()
    expect(all.strikes).toEqual(['refused 4', 'refused 4'])
    const places = all.law.places
    all.law.forget()
    let at = all.now
    for (let rounds = 0; all.law.places < 5 && rounds < 200; rounds += 1)
      at = work(all.law, { from: at, rounds: 1, time: 20 })
    goAway(all.law, at, { level: 5 })
    expect(all.law.places).toBe(places)
    expect(all.strikes).toEqual(['refused 4', 'refused 4', 'no strike Infinity', 'refused 4', 'refused 4'])
  })
})

/** The wall of a fleet. */
const WALL = { wall: { places: 20, fleet: 7 } } as const
/** Another decision of the fleet. */
const another = () => ({ ...WALL })

describe('The bound, where nothing is known above 4', () => {
  /** The answers until a fifth place is given, and the time (ms), at a device that is asked for one after the other. */
  function untilFive(time: number): { readonly answers: number; readonly after: number } {
    const law = new PlacesLaw({ min: 4, max: 64 })
    const start = 1_000_000
    let now = start
    let answers = 0
    for (; law.places < 5 && answers < 1_000; answers += 1) {
      const all = Array.from({ length: 4 }, (_, index) => law.sent('/', index + 1, now))
      now += time
      for (const place of all) {
        place.inside = 4
        law.answered(place, now)
        law.left(place)
      }
    }
    return { answers: 4 * answers, after: now - start }
  }

  it('H289 rises by one from the first place on in a fleet, whose other sidecars grow, too', () => {
    const law = new PlacesLaw({ min: 1, max: 64, inFleet: true })
    const limits = [law.places]
    for (let now = 0; law.places < 8; ) {
      now = work(law, { from: now, rounds: 1, time: 20 })
      if (limits.at(-1) !== law.places) limits.push(law.places)
    }
    expect(limits).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('H286 is never above the share of this sidecar in a fleet, whatever the least is', () => {
    const law = new PlacesLaw({ min: 1, max: 64, inFleet: true })
    let now = work(law, { from: 1_000_000, rounds: 400, time: 20 })
    expect(law.places).toBeGreaterThan(8)
    law.share(3, another(), now)
    expect(law.places).toBe(3)
    now = work(law, { from: now, rounds: 400, time: 20 })
    law.look(3, now, now + 10_000)
    expect(law.places).toBe(3)
    law.share(5, law.ceiling, now)
    expect(law.places).toBeGreaterThan(0)
    work(law, { from: now, rounds: 400, time: 20 })
    expect(law.places).toBe(5)
    const least = new PlacesLaw({ min: 4, max: 64, inFleet: true })
    least.share(2, another(), 0)
    work(least, { from: 0, rounds: 400, time: 20 })
    expect(least.places).toBe(2)
  })

  it('H286 with a smaller share, what has worked above it counts no more', () => {
    const law = new PlacesLaw({ min: 1, max: 64, inFleet: true })
    let now = work(law, { from: 1_000_000, rounds: 400, time: 20 })
    law.share(3, another(), now)
    now = work(law, { from: now + 2_000, rounds: 40, time: 20 })
    law.share(10, another(), now)
    now = work(law, { from: now, rounds: 3, time: 20 })
    expect(law.places).toBe(4)
    goAway(law, now, { level: 4 })
    expect(law.ceiling).toMatchObject({ wall: { places: 3 } })
  })

  it('H286 a larger share is tried at once, also if more places were not worth a try for long', () => {
    const law = new PlacesLaw({ min: 1, max: 64, inFleet: true })
    let now = 1_000_000
    const crowd = (): void => {
      now = work(law, { from: now, rounds: 1, time: 20 * Math.max(1, law.places / 4) })
    }
    for (let round = 0; round < 300; round += 1) crowd()
    law.share(3, another(), now)
    for (let round = 0; round < 3; round += 1) crowd()
    expect(law.places).toBe(3)
    law.share(10, another(), now)
    for (let round = 0; round < 3; round += 1) crowd()
    expect(law.places).toBe(4)
  })

  it('H286 after a smaller share, one more place of a larger one is given when those before it have held', () => {
    const law = new PlacesLaw({ min: 1, max: 64, inFleet: true })
    let now = 0
    const pass = (): void => {
      now = work(law, { from: now, rounds: 1, time: 20 })
    }
    law.share(10, another(), now)
    while (law.places < 10) pass()
    law.share(3, another(), now)
    pass()
    expect(law.places).toBe(3)
    law.share(10, another(), now)
    const limits = new Set<number>()
    while (law.places < 10) {
      pass()
      limits.add(law.places)
    }
    expect([...limits].filter((places) => places > 3)).toEqual([4, 5, 6, 7, 8, 9, 10])
  })

  it('H286 the same share, told again and again, changes nothing', () => {
    const limitsOf = (tells: boolean): number[] => {
      const law = new PlacesLaw({ min: 1, max: 64, inFleet: true })
      const limits: number[] = []
      law.share(10, another(), 0)
      for (let now = 0; limits.length < 400; limits.push(law.places)) {
        if (tells) law.share(10, law.ceiling, now)
        now = work(law, { from: now, rounds: 1, time: 20 * Math.max(1, law.places / 4) })
      }
      return limits
    }
    expect(limitsOf(true)).toEqual(limitsOf(false))
  })

  it.each([true, false])(
    'H286 answers to requests from before a word of the fleet show no room; another word: %s',
    (isNew) => {
      const law = new PlacesLaw({ min: 1, max: 64, inFleet: true })
      let now = 1_000_000
      while (law.places < 3) now = work(law, { from: now, rounds: 1, time: 400 })
      const places = Array.from({ length: 32 }, (_, i) => law.sent('/', 3, now + 10 * i))
      law.share(10, isNew ? another() : law.ceiling, now + 320)
      for (const [i, place] of places.entries()) law.answered(place, now + 10 * i + 400)
      expect(law.places).toBe(isNew ? 3 : 4)
    },
  )

  it('H265 rises by one after 32 answers of those so far, over a tenth of a second', () => {
    expect(untilFive(20).answers).toBe(32)
    expect(untilFive(1)).toEqual({ answers: 404, after: 101 })
  })
})
