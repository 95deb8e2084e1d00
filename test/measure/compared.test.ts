import { describe, expect, it } from 'vitest'
import { PlacesLaw } from '../../src/forward/places-law.ts'
import { UsualTimes } from '../../src/forward/usual-times.ts'
import { Work } from '../../src/forward/work.ts'
import { work } from './work.ts'

const USUAL = 20

/** A law that has found so many places, of many more; it has judged no response with them yet. */
function found(places: number, { more }: { readonly more: boolean }) {
  const law = new PlacesLaw({ min: 1, max: 200 })
  let now = 0
  while (law.places <= places) now = work(law, { from: now, rounds: 1, time: USUAL })
  law.share(places, {}, now)
  if (more) law.share(Number.POSITIVE_INFINITY, {}, now)
  expect(law.places).toBe(places)
  const times = new UsualTimes()
  times.ratio('/', USUAL, true)
  return {
    law,
    /** A response takes `ratio` times its usual time, while so many requests are at the device. */
    respond(ratio: number, inside = places): void {
      const place = law.sent('/', inside, now)
      const time = ratio * (times.of('/') ?? USUAL)
      now += time
      times.ratio('/', time, law.places === places)
      law.answered(place, now)
      law.left(place)
    },
    /** All places have a request, and no response comes before there are more. */
    keepSilent(): void {
      const before = law.places
      const taken = Array.from({ length: before }, (_, index) => law.sent('/', index + 1, now))
      const since = now
      while (law.places === before && now < since + 10_000) {
        now += 50
        law.look(before, since, now)
      }
      for (const place of taken) law.left(place)
    },
  }
}

/** How many rounds come before each of so many attempts that bring nothing. */
function pauses(attempts: number, kind: 'up' | 'down'): number[] {
  const compared = new Work()
  return Array.from({ length: attempts }, () => {
    for (let rounds = 1; ; rounds += 1) {
      compared.add(8, 1, false)
      if (!compared.rest()[kind]) continue
      if (kind === 'up') compared.triedMore(false)
      else compared.triedFewer(false)
      return rounds
    }
  })
}

describe('H198 the places that were found', () => {
  it('are tried with more after a pause that doubles up to 16 rounds', () => {
    expect(pauses(7, 'up')).toEqual([1, 2, 4, 8, 16, 16, 16])
  })

  it('are tried with half of them after a pause that grows fourfold up to 512 rounds', () => {
    expect(pauses(6, 'down')).toEqual([8, 32, 128, 512, 512, 512])
  })

  it('are tried with half of them much later, if nothing was answered the first time', () => {
    const { law, respond, keepSilent } = found(8, { more: false })
    const pause = (): number => {
      for (let rounds = 0; rounds < 100; rounds += 1) {
        if (law.places === 4) return rounds
        for (let i = 0; i < 16; i += 1) respond(1.2)
      }
      return 100
    }
    expect(pause()).toBe(8)
    keepSilent()
    expect(law.places).toBe(8)
    expect(Math.abs(pause() - 32)).toBeLessThan(3)
  })

  it.each([
    { slow: 2, places: 32 },
    { slow: 3, places: 16 },
  ])(
    'are $places after $slow of 64 responses at 32 hung: one counts as 16 times its usual time',
    ({ slow, places }) => {
      const { law, respond } = found(32, { more: false })
      for (let i = slow; i < 64; i += 1) respond(1)
      for (let i = 0; i < slow; i += 1) respond(1_000)
      expect(law.places).toBe(places)
    },
  )

  it.each([
    { ratio: 1.4, places: 8 },
    { ratio: 1.6, places: 4 },
  ])(
    'are $places after a round of responses that took $ratio times their usual time at 8',
    ({ ratio, places }) => {
      const { law, respond } = found(8, { more: false })
      for (let i = 0; i < 16; i += 1) respond(ratio)
      expect(law.places).toBe(places)
    },
  )

  it.each([
    { places: 2, samples: 8 },
    { places: 8, samples: 16 },
    { places: 64, samples: 64 },
  ])('are judged by $samples responses if they are $places', ({ places, samples }) => {
    const { law, respond } = found(places, { more: false })
    let count = 0
    for (; law.places === places && count < 1_000; count += 1) respond(2)
    expect(count).toBe(samples)
  })

  it.each([
    { share: 0.4, places: 8 },
    { share: 0.6, places: 9 },
  ])(
    'are $places after an attempt with one more than 8, which brought $share of what it could',
    ({ share, places }) => {
      const { law, respond } = found(8, { more: true })
      for (let i = 0; i < 16; i += 1) respond(1)
      expect(law.places).toBe(9)
      for (let i = 0; i < 18; i += 1) respond(9 / (8 + share), 9)
      expect(law.places).toBe(places)
    },
  )

  it.each([
    { share: 0.7, places: 8 },
    { share: 0.8, places: 9 },
  ])(
    'are $places on the way from 8 to 16, if the device does $share of the work before at 9',
    ({ share, places }) => {
      const law = new PlacesLaw({ min: 1, max: 200 })
      let now = 0
      while (law.places < 9) now = work(law, { from: now, rounds: 1, time: USUAL })
      for (let i = 0; i < 8; i += 1) {
        const place = law.sent('/', 9, now)
        // The eighth place came while seven requests were answered: their work is what was found.
        now += (USUAL * 9) / (7 * share)
        law.answered(place, now)
        law.left(place)
      }
      expect(law.places).toBe(places)
    },
  )
})
