import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openCeilings } from '../../src/forward/ceilings.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'

const DAY = 86_400_000
const WEEK = 7 * DAY
const DEVICE = 'http://192.0.2.7 1-64'

const fail = (error: unknown): void => expect(error).toBeUndefined()
const open = (folder: string, clock: MovableClock) => openCeilings(folder, clock, fail)
type Ceilings = ReturnType<typeof open>

/** Sets the wall clock to 1970, where a board without a battery starts. */
function startIn1970(clock: MovableClock): void {
  clock.jumpWall(20_000 - clock.wall())
}

/** A wall that is found now. */
function findWall(ceilings: Ceilings, clock: MovableClock): void {
  ceilings.keep('', DEVICE, { wall: { kind: 'broke', places: 4, until: clock.monotonic() + WEEK } })
}

/** How long (ms) until one more place is tried. */
function left(ceilings: Ceilings, clock: MovableClock): number {
  const { guess, wall } = ceilings.of('', DEVICE)
  return (guess?.until ?? (wall?.kind === 'broke' ? wall.until : Number.NaN)) - clock.monotonic()
}

function inFile(folder: string): { readonly until?: number } {
  return JSON.parse(readFileSync(join(folder, 'ceilings.json'), 'utf8'))[''].wall
}

describe('H279 the times of ceilings, after a step of the clock', () => {
  it('are written again for what this run has found: a restart finds the rest of its week', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    const today = clock.wall()
    startIn1970(clock)
    const ceilings = open(folder, clock)
    findWall(ceilings, clock)
    clock.advance(DAY)
    clock.jumpWall(today + DAY - clock.wall())
    expect(ceilings.followClock()).toBe(true)
    expect(inFile(folder).until).toBe(today + WEEK)
    clock.advance(DAY)
    expect(left(ceilings, clock)).toBe(5 * DAY)
    expect(left(open(folder, clock), clock)).toBe(5 * DAY)
  })

  it('are those of the file for what an earlier run has found, when the clock is set', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    findWall(open(folder, clock), clock)
    const written = readFileSync(join(folder, 'ceilings.json'), 'utf8')
    const today = clock.wall() + 3 * DAY
    startIn1970(clock)
    const ceilings = open(folder, clock)
    expect(left(ceilings, clock)).toBe(WEEK)
    clock.jumpWall(today - clock.wall())
    expect(ceilings.followClock()).toBe(true)
    expect(left(ceilings, clock)).toBe(4 * DAY)
    expect(readFileSync(join(folder, 'ceilings.json'), 'utf8')).toBe(written)
    expect(ceilings.followClock()).toBe(false)
  })

  it('are judged for each part: a guess of this run beside a wall of an earlier one', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    findWall(open(folder, clock), clock)
    const today = clock.wall() + 3 * DAY
    startIn1970(clock)
    const ceilings = open(folder, clock)
    const { wall } = ceilings.of('', DEVICE)
    const guess = { places: 2, until: clock.monotonic() + DAY, wait: DAY }
    ceilings.keep('', DEVICE, { guess, ...(wall && { wall }) })
    clock.jumpWall(today - clock.wall())
    ceilings.followClock()
    expect(left(ceilings, clock)).toBe(DAY)
    const again = open(folder, clock).of('', DEVICE)
    expect(again.guess?.until).toBe(clock.monotonic() + DAY)
    expect(again.wall).toMatchObject({ kind: 'broke', until: clock.monotonic() + 4 * DAY })
  })

  it('move with a clock that was ahead and is set back', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    const today = clock.wall()
    clock.jumpWall(900 * DAY)
    findWall(open(folder, clock), clock)
    const ceilings = open(folder, clock)
    clock.advance(DAY)
    clock.jumpWall(-900 * DAY)
    expect(ceilings.followClock()).toBe(true)
    expect(left(ceilings, clock)).toBe(6 * DAY)
    expect(inFile(folder).until).toBe(today + WEEK)
    expect(left(open(folder, clock), clock)).toBe(6 * DAY)
  })

  it('stay when the clock is set to 1970 again: it is not believed', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    const ceilings = open(folder, clock)
    findWall(ceilings, clock)
    const before = inFile(folder).until
    startIn1970(clock)
    clock.advance(DAY)
    expect(ceilings.followClock()).toBe(false)
    ceilings.keep('/video', DEVICE, { wall: { kind: 'barred', places: 2 } })
    expect(inFile(folder).until).toBe(before)
  })

  it('are never more than a week away, however often the clock is set', () => {
    const folder = temporaryDirectory()
    const clock = stillClock()
    const ahead = open(folder, clock)
    clock.jumpWall(900 * DAY)
    ahead.followClock()
    findWall(ahead, clock)
    clock.jumpWall(-900 * DAY)
    const ceilings = open(folder, clock)
    expect(left(ceilings, clock)).toBeLessThanOrEqual(WEEK)
    clock.advance(DAY)
    clock.jumpWall(DAY)
    ceilings.followClock()
    expect(left(ceilings, clock)).toBeLessThanOrEqual(6 * DAY)
  })
})
