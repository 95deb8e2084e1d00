import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../system/clock.ts'
import { createLastingClock } from '../system/lasting-clock.ts'
import { ensureFolder, writeFlushed } from '../system/own-files.ts'
import { codeOf } from '../system/setup-error.ts'

/** A bound past which the device had no room: it refused, let requests hang, or went away for a reason that is not certain. */
export interface Guess {
  readonly limit: number
  /** When one more place is tried (ms). */
  readonly until: number
  /** The time between two attempts (ms). It doubles up to a day. */
  readonly wait: number
}

/**
 * A bound that broke the device as soon as it was passed. `broke`: one more place is tried once, at `until` (ms). `tried`: it is tried
 * now. `barred`: it broke again, and the operator alone can lift it.
 */
export type Wall = (
  | { readonly kind: 'broke'; readonly limit: number; readonly until: number }
  | { readonly kind: 'tried'; readonly limit: number }
  | { readonly kind: 'barred'; readonly limit: number }
) & {
  /** It is the wall of a fleet. `limit` is the share of this sidecar, which may be used in each case, and the fleet decides what is tried. */
  readonly fleet?: FleetPart
}

/** What all sidecars of a fleet may have at the device together, and which word of the fleet that is. */
export interface FleetPart {
  readonly sum: number
  readonly version: number
}

/** What is known about the bounds past which a device has no room. It survives a restart. */
export interface Ceiling {
  readonly guess?: Guess
  readonly wall?: Wall
}

const HOUR = 3_600_000
const DAY = 24 * HOUR
const WEEK = 7 * DAY

export const UNKNOWN: Ceiling = {}

/** The bound that the ceiling allows now; infinite if nothing is known. */
export function mostUnder({ guess, wall }: Ceiling): number {
  const least = guess?.limit ?? Number.POSITIVE_INFINITY
  if (wall === undefined) return least
  return Math.min(least, isOwnAttempt(wall) ? wall.limit + 1 : wall.limit)
}

/** One more place is tried, and this sidecar alone decides that. */
function isOwnAttempt(wall: Wall | undefined): boolean {
  return wall?.kind === 'tried' && wall.fleet === undefined
}

/** The ceiling after the device has shown that it has no room above `limit`, at `now` (ms). */
export function guessed({ guess, wall }: Ceiling, limit: number, now: number): Ceiling {
  const wait = guess === undefined ? HOUR : Math.min(2 * guess.wait, DAY)
  const above = wall !== undefined && isOwnAttempt(wall) ? retreated(wall, now) : wall
  return { ...(above && { wall: above }), guess: { limit, until: now + wait, wait } }
}

/** The ceiling after one more than `limit` broke the device, at `now` (ms). */
export function broken({ wall }: Ceiling, limit: number, now: number): Ceiling {
  const again = wall !== undefined && wall.fleet === undefined && wall.limit === limit
  return { wall: again ? { kind: 'barred', limit } : { kind: 'broke', limit, until: now + WEEK } }
}

/**
 * The ceiling after the device was away with no more requests than the wall allows. The number was not the cause, so the wall becomes a
 * guess. A barred wall stays: its number broke the device twice.
 */
export function doubted(ceiling: Ceiling, now: number): Ceiling {
  const { wall, guess } = ceiling
  if (wall === undefined || wall.kind === 'barred') return ceiling
  // Another sidecar may have one more there.
  if (wall.kind === 'tried' && wall.fleet !== undefined) return ceiling
  if (guess !== undefined && guess.limit < wall.limit) return { guess }
  return { guess: { limit: wall.limit, until: now + HOUR, wait: HOUR } }
}

/** The ceiling after the device has carried `carried` requests at once for a while: a lower wall was wrong. */
export function disproved(ceiling: Ceiling, carried: number): Ceiling {
  const { wall } = ceiling
  if (wall === undefined || wall.fleet !== undefined || wall.limit >= carried) return ceiling
  return ceiling.guess === undefined ? UNKNOWN : { guess: ceiling.guess }
}

/** One more place is tried. Returns the same ceiling if it is not time yet. */
export function attemptAt(ceiling: Ceiling, now: number): Ceiling {
  const { guess, wall } = ceiling
  if (guess !== undefined && now >= guess.until) {
    const { limit, wait } = guess
    return { ...ceiling, guess: { limit: limit + 1, until: now + wait, wait } }
  }
  if (wall?.kind !== 'broke' || wall.fleet !== undefined || now < wall.until) return ceiling
  return { ...ceiling, wall: { kind: 'tried', limit: wall.limit } }
}

/** When one more place is tried (ms). Undefined: it is tried now, the operator decides, or nothing is known. */
export function nextAttempt({ guess, wall }: Ceiling): number | undefined {
  if (guess !== undefined && (wall === undefined || guess.limit <= wall.limit)) return guess.until
  return wall?.kind === 'broke' ? wall.until : undefined
}

/** The most requests at once for which the device has shown room, in a fleet over all sidecars; undefined if nothing is known. */
export function roomUnder({ guess, wall }: Ceiling): number | undefined {
  return wall === undefined ? guess?.limit : (wall.fleet?.sum ?? wall.limit)
}

/** What the last strike has made of the ceiling. */
export function kindOf({ guess, wall }: Ceiling): 'guess' | 'broke' | 'barred' {
  if (guess !== undefined || wall === undefined) return 'guess'
  return wall.kind === 'barred' ? 'barred' : 'broke'
}

/** The ceiling of a sidecar that is in no fleet any more: its share stays its bound. */
export function withoutFleet(ceiling: Ceiling, now: number): Ceiling {
  const { guess, wall } = ceiling
  if (wall?.fleet === undefined) return ceiling
  const { fleet: _, ...own } = wall
  return { ...(guess && { guess }), wall: own.kind === 'tried' ? retreated(own, now) : own }
}

/** An attempt that ended without an outcome: the next one is a week later. */
function retreated({ limit }: Wall, now: number): Wall {
  return { kind: 'broke', limit, until: now + WEEK }
}

/** What was found past which bounds devices have no room, kept over restarts. */
export interface Ceilings {
  /** The id of this sidecar in its fleet. It survives a restart as the shares do. */
  readonly sidecar: string
  /**
   * @param service its path in `upstream.routes`; empty for the main service
   * @param device its address and the bounds of its places: what was learned about others does not count
   */
  of(service: string, device: string): Ceiling
  /** Keeps it in place of the one before; its file is written at once. */
  keep(service: string, device: string, ceiling: Ceiling): void
  /**
   * Looks whether the wall clock was set. Then the times of what this run has found are written again, and those of the file are judged by
   * the new time. Returns whether `of` may give other times than before. Call it about once a second.
   */
  followClock(): boolean
}

interface Kept {
  readonly device: string
  readonly ceiling: Ceiling
}

/** Where the file has the id of the sidecar: the path of a service begins with a slash. */
const SIDECAR = 'sidecar'
const ID = /^[0-9a-f]{16}$/

/** The parts of a ceiling that have a time. */
type Timed = Guess | Extract<Wall, { kind: 'broke' }>

/**
 * Reads `ceilings.json` in the state folder; times in it are of the wall clock. A file that is missing or unusable is the same as none.
 *
 * @param onFailure the file cannot be read or written: what is learned does not survive a restart
 */
export function openCeilings(folder: string, clock: Clock, onFailure: (error: unknown) => void): Ceilings {
  const path = join(folder, 'ceilings.json')
  const start = clock.monotonic()
  const kept = new Map<string, Kept>()
  /** The time that the file gives each part that was read from it. */
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

  /** A part of the file on the monotonic clock. A clock that was set wrong does not delay the next attempt. */
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

/** The ceiling after a restart at `now` (ms), which has ended an attempt. */
function interrupted(ceiling: Ceiling, now: number): Ceiling {
  const { wall } = ceiling
  return wall !== undefined && isOwnAttempt(wall) ? { ...ceiling, wall: retreated(wall, now) } : ceiling
}

/** The time between two attempts (ms). */
function waitOf(part: Timed): number {
  return 'wait' in part ? part.wait : WEEK
}

/** When the device last showed a part of the ceiling, by the times in the file (ms). */
function latestIn({ ceiling }: Kept): number {
  const { guess, wall } = ceiling
  const parts = [...(guess ? [guess] : []), ...(wall?.kind === 'broke' ? [wall] : [])]
  return Math.max(0, ...parts.map((part) => part.until - waitOf(part)))
}

/** Undefined if nothing in it is usable. */
function readKept(value: unknown): Kept | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { device, guess, wall }: { device?: unknown; guess?: unknown; wall?: unknown } = value
  if (typeof device !== 'string') return undefined
  const known = { ...(isGuess(guess) && { guess }), ...(isWall(wall) && { wall }) }
  return { device, ceiling: known }
}

function isGuess(value: unknown): value is Guess {
  if (typeof value !== 'object' || value === null) return false
  const { limit, until, wait }: Partial<Guess> = value
  return isPlaces(limit) && Number.isFinite(until) && Number(wait) > 0 && Number(wait) <= DAY
}

function isWall(value: unknown): value is Wall {
  if (typeof value !== 'object' || value === null) return false
  const { kind, limit, until, fleet }: { [Key in 'kind' | 'limit' | 'until' | 'fleet']?: unknown } = value
  if (!isPlaces(limit) || (fleet !== undefined && !isFleetPart(fleet))) return false
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
