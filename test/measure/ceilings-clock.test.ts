import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openCeilings } from '../../src/forward/ceilings-file.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const DEVICE = 'http://192.0.2.7 1-64'

const fail = (error: unknown): void => expect(error).toBeUndefined()
const open = (folder: string, clock: MovableClock) => openCeilings(folder, clock, fail)
type Ceilings = ReturnType<typeof open>

/** Sets the wall clock to 1970, where a board without a battery starts. */
function startIn1970(clock: MovableClock): void {
  clock.jumpWall(20_000 - clock.wall())
}

/** A strike of now: one more place is tried a day later. */
function strike(ceilings: Ceilings, clock: MovableClock, service = ''): void {
  ceilings.keep(service, DEVICE, { guess: { places: 4, until: clock.monotonic() + DAY, wait: DAY } })
}

/** How long (ms) until one more place is tried. */
function left(ceilings: Ceilings, clock: MovableClock, service = ''): number {
  return (ceilings.of(service, DEVICE).guess?.until ?? Number.NaN) - clock.monotonic()
}

function inFile(folder: string): { readonly until?: number } {
  return JSON.parse(readFileSync(join(folder, 'ceilings.json'), 'utf8'))[''].guess
}

describe('H279 the times of ceilings, after a step of the clock', () => {
  it('are written again for what this run has found: a restart finds the rest of its day', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    const today = clock.wall()
    startIn1970(clock)
    const ceilings = open(folder, clock)
    strike(ceilings, clock)
    clock.advance(4 * HOUR)
    clock.jumpWall(today + 4 * HOUR - clock.wall())
    expect(ceilings.followClock()).toBe(true)
    expect(inFile(folder).until).toBe(today + DAY)
    clock.advance(4 * HOUR)
    expect(left(ceilings, clock)).toBe(16 * HOUR)
    expect(left(open(folder, clock), clock)).toBe(16 * HOUR)
  })

  it('are those of the file for what an earlier run has found, when the clock is set', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    strike(open(folder, clock), clock)
    const written = readFileSync(join(folder, 'ceilings.json'), 'utf8')
    const today = clock.wall() + 12 * HOUR
    startIn1970(clock)
    const ceilings = open(folder, clock)
    expect(left(ceilings, clock)).toBe(DAY)
    clock.jumpWall(today - clock.wall())
    expect(ceilings.followClock()).toBe(true)
    expect(left(ceilings, clock)).toBe(12 * HOUR)
    expect(readFileSync(join(folder, 'ceilings.json'), 'utf8')).toBe(written)
    expect(ceilings.followClock()).toBe(false)
  })

  it('are judged for each service: a strike of this run beside one of an earlier one', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    strike(open(folder, clock), clock)
    const today = clock.wall() + 12 * HOUR
    startIn1970(clock)
    const ceilings = open(folder, clock)
    strike(ceilings, clock, '/video')
    clock.jumpWall(today - clock.wall())
    ceilings.followClock()
    for (const each of [ceilings, open(folder, clock)]) {
      expect(left(each, clock, '/video')).toBe(DAY)
      expect(left(each, clock)).toBe(12 * HOUR)
    }
  })

  it('move with a clock that was ahead and is set back', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    const today = clock.wall()
    clock.jumpWall(900 * DAY)
    strike(open(folder, clock), clock)
    const ceilings = open(folder, clock)
    clock.advance(4 * HOUR)
    clock.jumpWall(-900 * DAY)
    expect(ceilings.followClock()).toBe(true)
    expect(left(ceilings, clock)).toBe(20 * HOUR)
    expect(inFile(folder).until).toBe(today + DAY)
    expect(left(open(folder, clock), clock)).toBe(20 * HOUR)
  })

  it('stay when the clock is set to 1970 again: it is not believed', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    const ceilings = open(folder, clock)
    strike(ceilings, clock)
    const before = inFile(folder).until
    startIn1970(clock)
    clock.advance(DAY)
    expect(ceilings.followClock()).toBe(false)
    ceilings.keep('/video', DEVICE, { wall: { places: 2 } })
    expect(inFile(folder).until).toBe(before)
  })

  it('are never more than their wait away, however often the clock is set', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    const ahead = open(folder, clock)
    clock.jumpWall(900 * DAY)
    ahead.followClock()
    strike(ahead, clock)
    clock.jumpWall(-900 * DAY)
    const ceilings = open(folder, clock)
    expect(left(ceilings, clock)).toBeLessThanOrEqual(DAY)
    clock.advance(4 * HOUR)
    clock.jumpWall(4 * HOUR)
    ceilings.followClock()
    expect(left(ceilings, clock)).toBeLessThanOrEqual(20 * HOUR)
  })
})
