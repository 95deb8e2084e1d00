import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../system/clock.ts'
import { createLastingClock } from '../system/lasting-clock.ts'
import { ensureFolder, writeFlushed } from '../system/own-files.ts'
import { codeOf } from '../system/setup-error.ts'

/** So many places: above them the device had no room. It refused, let requests hang, or went away for a reason that is not certain. */
interface Guess {
  readonly places: number
  /** When one more place is tried (ms, monotonic). */
  readonly until: number
  /** The time between two attempts (ms). It doubles up to a day. */
  readonly wait: number
}

/**
 * So many places: one request more broke the device at once. `broke`: one more place is tried once, at `until` (ms). `tried`: that attempt
 * runs now. `barred`: the attempt broke the device again, and only the operator can lift the wall.
 */
export type Wall = (
  | { readonly kind: 'broke'; readonly places: number; readonly until: number }
  | { readonly kind: 'tried'; readonly places: number }
  | { readonly kind: 'barred'; readonly places: number }
) & {
  /** Present if the wall belongs to a fleet. `places` is then the share of this sidecar, and the fleet decides whether more is tried. */
  readonly fleet?: FleetPart
}

/** `sum`: how many requests all sidecars of a fleet may have at the device together. `version`: which decision of the fleet that is. */
interface FleetPart {
  readonly sum: number
  readonly version: number
}

/** The most places at the device, as far as it has shown that more are too many. It survives a restart. */
export interface Ceiling {
  readonly guess?: Guess
  readonly wall?: Wall
}

const HOUR = 3_600_000
const DAY = 24 * HOUR
const WEEK = 7 * DAY

export const UNKNOWN: Ceiling = {}

/** The sign by which the device has shown that it has no room for more requests at once. */
export type Strike = 'refused' | 'hangs'

/**
 * Why the ceiling changes. `doubted`: the device was away with no more requests than the wall allows. `carried`: it has answered more at
 * once. `attempt`: one more place is tried. `shared`: the fleet has decided it. `forgotten`: the operator has (`postern retry`).
 */
export type CeilingCause = Strike | 'doubted' | 'carried' | 'attempt' | 'shared' | 'forgotten'

/** Whether the device has shown that it has no room above the ceiling. */
export function isStrike(cause: CeilingCause): cause is Strike {
  return cause === 'refused' || cause === 'hangs'
}

/** The places that the ceiling allows now; infinite if nothing is known. */
export function mostUnder({ guess, wall }: Ceiling): number {
  const least = guess?.places ?? Number.POSITIVE_INFINITY
  if (wall === undefined) return least
  return Math.min(least, isOwnAttempt(wall) ? wall.places + 1 : wall.places)
}

/** Whether this sidecar tries one more place by its own decision. */
function isOwnAttempt(wall: Wall | undefined): boolean {
  return wall?.kind === 'tried' && wall.fleet === undefined
}

/** The ceiling after the device has shown that it has no room above `places`, at `now` (ms). */
export function guessed({ guess, wall }: Ceiling, places: number, now: number): Ceiling {
  const wait = guess === undefined ? HOUR : Math.min(2 * guess.wait, DAY)
  const above = wall !== undefined && isOwnAttempt(wall) ? retreated(wall, now) : wall
  return { ...(above && { wall: above }), guess: { places, until: now + wait, wait } }
}

/** The ceiling after one more than `places` broke the device, at `now` (ms). */
export function broken({ wall }: Ceiling, places: number, now: number): Ceiling {
  const again = wall !== undefined && wall.fleet === undefined && wall.places === places
  return { wall: again ? { kind: 'barred', places } : { kind: 'broke', places, until: now + WEEK } }
}

/**
 * The ceiling after the device was away with no more requests than the wall allows. The number was not the cause, so the wall becomes a
 * guess. A barred wall stays: its number broke the device twice.
 */
export function doubted(ceiling: Ceiling, now: number): Ceiling {
  const { wall, guess } = ceiling
  if (wall === undefined || wall.kind === 'barred') return ceiling
  // Another sidecar may have one more request there.
  if (wall.kind === 'tried' && wall.fleet !== undefined) return ceiling
  if (guess !== undefined && guess.places < wall.places) return { guess }
  return { guess: { places: wall.places, until: now + HOUR, wait: HOUR } }
}

/** The ceiling after the device has carried `carried` requests at once for a while: a lower wall was wrong. */
export function disproved(ceiling: Ceiling, carried: number): Ceiling {
  const { wall } = ceiling
  if (wall === undefined || wall.fleet !== undefined || wall.places >= carried) return ceiling
  return ceiling.guess === undefined ? UNKNOWN : { guess: ceiling.guess }
}

/** The ceiling with one more place, if it is time to try that. Otherwise returns the same object. */
export function attemptAt(ceiling: Ceiling, now: number): Ceiling {
  const { guess, wall } = ceiling
  if (guess !== undefined && now >= guess.until) {
    const { places, wait } = guess
    return { ...ceiling, guess: { places: places + 1, until: now + wait, wait } }
  }
  if (wall?.kind !== 'broke' || wall.fleet !== undefined || now < wall.until) return ceiling
  return { ...ceiling, wall: { kind: 'tried', places: wall.places } }
}

/** When one more place is tried (ms). Undefined: it is tried now, the operator decides, or nothing is known. */
export function nextAttempt({ guess, wall }: Ceiling): number | undefined {
  if (guess !== undefined && (wall === undefined || guess.places <= wall.places)) return guess.until
  return wall?.kind === 'broke' ? wall.until : undefined
}

/** The most requests at once for which the device has shown room, in a fleet over all sidecars; undefined if nothing is known. */
export function roomUnder({ guess, wall }: Ceiling): number | undefined {
  return wall === undefined ? guess?.places : (wall.fleet?.sum ?? wall.places)
}

/** The kind of ceiling that the last strike has left. */
export function kindOf({ guess, wall }: Ceiling): 'guess' | 'broke' | 'barred' {
  if (guess !== undefined || wall === undefined) return 'guess'
  return wall.kind === 'barred' ? 'barred' : 'broke'
}

/** The ceiling of a sidecar that has left its fleet: its share stays its bound. */
export function withoutFleet(ceiling: Ceiling, now: number): Ceiling {
  const { guess, wall } = ceiling
  if (wall?.fleet === undefined) return ceiling
  const { fleet: _, ...own } = wall
  return { ...(guess && { guess }), wall: own.kind === 'tried' ? retreated(own, now) : own }
}

/** The wall after an attempt without an outcome: the next attempt is a week later. */
function retreated({ places }: Wall, now: number): Wall {
  return { kind: 'broke', places, until: now + WEEK }
}

/** The ceilings of all services, kept over restarts. */
export interface Ceilings {
  /** The id of this sidecar in its fleet. It survives a restart, as the shares do. */
  readonly sidecar: string
  /**
   * The ceiling of a service; `UNKNOWN` for another device than the one that was learned.
   *
   * @param service its path in `upstream.routes`; empty for the main service
   * @param device its address, and the least and the most places
   */
  of(service: string, device: string): Ceiling
  /** Replaces the ceiling of a service, and writes the file at once. */
  keep(service: string, device: string, ceiling: Ceiling): void
  /**
   * Checks whether the wall clock was set. If so, the times of what this run has found are written again, and those from the file are
   * judged by the new time. Returns whether `of` may give other times than before. Call it about once a second.
   */
  followClock(): boolean
}

interface Kept {
  readonly device: string
  readonly ceiling: Ceiling
}

/** The entry of the file with the id of the sidecar. No service has this name: its path is empty or begins with a slash. */
const SIDECAR = 'sidecar'
const ID = /^[0-9a-f]{16}$/

/** The parts of a ceiling that have a time. */
type Timed = Guess | Extract<Wall, { kind: 'broke' }>

/**
 * Reads `ceilings.json` in the state folder; its times are of the wall clock. A file that is missing or unusable counts as an empty one.
 *
 * @param onFailure called once if the file cannot be read or written: what is learned does not survive a restart
 */
export function openCeilings(folder: string, clock: Clock, onFailure: (error: unknown) => void): Ceilings {
  const path = join(folder, 'ceilings.json')
  const start = clock.monotonic()
  const kept = new Map<string, Kept>()
  /** The wall time of each part that was read from the file (ms). */
  let times = new WeakMap<Timed, number>()
  let sidecar = randomBytes(8).toString('hex')
  let failed = false
  function attempt(work: () => void): void {
    try {
      work()
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || failed) return
      failed = true
      onFailure(error)
    }
  }
  attempt(() => {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8'))
    for (const [service, value] of Object.entries(read ?? {})) {
      const found = readKept(value)
      if (found !== undefined) kept.set(service, found)
      else if (service === SIDECAR && typeof value === 'string' && ID.test(value)) sidecar = value
    }
  })
  const time = createLastingClock(clock, Math.max(0, ...[...kept.values()].map(latestIn)))

  /** Converts a part of the file to the monotonic clock. The next attempt is at most one wait away, even if the wall clock was wrong. */
  function judge<Part extends Timed>(part: Part, until: number): Part {
    const judged = { ...part, until: Math.min(until - time.ahead(), start + waitOf(part)) }
    times.set(judged, until)
    return judged
  }

  function change(to: (ceiling: Ceiling) => Ceiling): void {
    for (const [service, { device, ceiling }] of kept) kept.set(service, { device, ceiling: to(ceiling) })
  }

  function write(): void {
    attempt(() => {
      const entries: [string, unknown][] = [...kept].map(([service, { device, ceiling }]) => {
        const written = withTimes(ceiling, (part) => ({
          ...part,
          until: times.get(part) ?? Math.round(part.until + time.ahead()),
        }))
        return [service, { device, ...written }]
      })
      if ([...kept.values()].some(({ ceiling }) => ceiling.wall?.fleet)) entries.push([SIDECAR, sidecar])
      ensureFolder(folder)
      renameSync(writeFlushed(path, JSON.stringify(Object.fromEntries(entries))), path)
    })
  }

  change((ceiling) => {
    const judged = withTimes(ceiling, (part) => judge(part, part.until))
    return interrupted(judged, start)
  })
  return {
    sidecar,
    of(service, device) {
      const found = kept.get(service)
      return found?.device === device ? found.ceiling : UNKNOWN
    },
    keep(service, device, ceiling) {
      const { guess, wall } = ceiling
      if (guess !== undefined || wall !== undefined) kept.set(service, { device, ceiling })
      else if (!kept.delete(service)) return
      write()
    },
    followClock() {
      const step = time.look()
      if (step === 'none' || step === 'lost' || kept.size === 0) return false
      if (step === 'shift') times = new WeakMap()
      else
        change((ceiling) =>
          withTimes(ceiling, (part) => {
            const until = times.get(part)
            return until === undefined ? part : judge(part, until)
          }),
        )
      write()
      return true
    },
  }
}

/** The same ceiling with other times. */
function withTimes({ guess, wall }: Ceiling, to: <Part extends Timed>(part: Part) => Part): Ceiling {
  return {
    ...(guess && { guess: to(guess) }),
    ...(wall && { wall: wall.kind === 'broke' ? to(wall) : wall }),
  }
}

/** The ceiling after a restart at `now` (ms). The restart has ended an attempt. */
function interrupted(ceiling: Ceiling, now: number): Ceiling {
  const { wall } = ceiling
  return wall !== undefined && isOwnAttempt(wall) ? { ...ceiling, wall: retreated(wall, now) } : ceiling
}

/** The time between two attempts (ms). */
function waitOf(part: Timed): number {
  return 'wait' in part ? part.wait : WEEK
}

/** When the device last showed a part of this ceiling, by the wall times in the file (ms). */
function latestIn({ ceiling }: Kept): number {
  const { guess, wall } = ceiling
  const parts = [...(guess ? [guess] : []), ...(wall?.kind === 'broke' ? [wall] : [])]
  return Math.max(0, ...parts.map((part) => part.until - waitOf(part)))
}

/** Undefined if the entry names no device. A part that is unusable is left out. */
function readKept(value: unknown): Kept | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { device, guess, wall }: { device?: unknown; guess?: unknown; wall?: unknown } = value
  if (typeof device !== 'string') return undefined
  const known = { ...(isGuess(guess) && { guess }), ...(isWall(wall) && { wall }) }
  return { device, ceiling: known }
}

function isGuess(value: unknown): value is Guess {
  if (typeof value !== 'object' || value === null) return false
  const { places, until, wait }: Partial<Guess> = value
  return isPlaces(places) && Number.isFinite(until) && Number(wait) > 0 && Number(wait) <= DAY
}

function isWall(value: unknown): value is Wall {
  if (typeof value !== 'object' || value === null) return false
  const { kind, places, until, fleet }: { [Key in 'kind' | 'places' | 'until' | 'fleet']?: unknown } = value
  if (!isPlaces(places) || (fleet !== undefined && !isFleetPart(fleet))) return false
  return kind === 'broke' ? Number.isFinite(until) : kind === 'tried' || kind === 'barred'
}

function isFleetPart(value: unknown): value is FleetPart {
  if (typeof value !== 'object' || value === null) return false
  const { sum, version }: Partial<FleetPart> = value
  return isPlaces(sum) && Number.isFinite(version)
}

function isPlaces(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) > 0
}
