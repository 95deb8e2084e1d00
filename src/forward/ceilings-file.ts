import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../system/clock.ts'
import { createLastingClock } from '../system/lasting-clock.ts'
import { ensureFolder, writeFlushed } from '../system/own-files.ts'
import { codeOf } from '../system/setup-error.ts'
import { type Ceiling, DAY, type Guess, UNKNOWN, type Wall } from './ceiling.ts'

/** The ceilings of all services, kept over restarts. */
export interface Ceilings {
  /** The id of this sidecar in its fleet. It survives a restart. */
  sidecar(): string
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

/**
 * Reads `ceilings.json` in the state folder; its times are of the wall clock. A file that is missing or unusable counts as an empty one.
 *
 * @param onFailure called once if the file cannot be read or written: what is learned does not survive a restart
 */
export function openCeilings(folder: string, clock: Clock, onFailure: (error: unknown) => void): Ceilings {
  const path = join(folder, 'ceilings.json')
  const start = clock.monotonic()
  const kept = new Map<string, Kept>()
  /** The wall time of each guess that was read from the file (ms). */
  let times = new WeakMap<Guess, number>()
  let sidecar: string | undefined
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

  /** Converts a guess of the file to the monotonic clock. The next attempt is at most one wait away, even if the wall clock was wrong. */
  function judge(guess: Guess, until: number): Guess {
    const judged = { ...guess, until: Math.min(until - time.ahead(), start + guess.wait) }
    times.set(judged, until)
    return judged
  }

  function changeGuesses(to: (guess: Guess) => Guess): void {
    for (const [service, { device, ceiling }] of kept)
      if (ceiling.guess !== undefined)
        kept.set(service, { device, ceiling: { ...ceiling, guess: to(ceiling.guess) } })
  }

  /** What the file has of a guess. */
  function written(guess: Guess): Guess {
    return { ...guess, until: times.get(guess) ?? Math.round(guess.until + time.ahead()) }
  }

  function write(): void {
    attempt(() => {
      const entries: [string, unknown][] = [...kept].map(([service, { device, ceiling }]) => {
        const { guess, wall } = ceiling
        return [service, { device, ...(guess && { guess: written(guess) }), ...(wall && { wall }) }]
      })
      if (sidecar !== undefined) entries.push([SIDECAR, sidecar])
      ensureFolder(folder)
      renameSync(writeFlushed(path, JSON.stringify(Object.fromEntries(entries))), path)
    })
  }

  changeGuesses((guess) => judge(guess, guess.until))
  return {
    sidecar() {
      if (sidecar === undefined) {
        sidecar = randomBytes(8).toString('hex')
        write()
      }
      return sidecar
    },
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
        changeGuesses((guess) => {
          const until = times.get(guess)
          return until === undefined ? guess : judge(guess, until)
        })
      write()
      return true
    },
  }
}

/** When the device last showed this ceiling, by the wall time in the file (ms). */
function latestIn({ ceiling: { guess } }: Kept): number {
  return guess === undefined ? 0 : guess.until - guess.wait
}

/** Undefined if the entry names no device. A part that is unusable is left out. */
function readKept(value: unknown): Kept | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { device, guess, wall }: { device?: unknown; guess?: unknown; wall?: unknown } = value
  if (typeof device !== 'string') return undefined
  const found = readWall(wall)
  return { device, ceiling: { ...(isGuess(guess) && { guess }), ...(found && { wall: found }) } }
}

function isGuess(value: unknown): value is Guess {
  if (typeof value !== 'object' || value === null) return false
  const { places, until, wait }: Partial<Guess> = value
  return isCount(places) && Number.isFinite(until) && Number(wait) > 0 && Number(wait) <= DAY
}

function readWall(value: unknown): Wall | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { places, doubted, fleet }: { [Key in keyof Wall]?: unknown } = value
  if (!isCount(places)) return undefined
  return { places, ...(doubted === true && { doubted }), ...(isCount(fleet) && { fleet }) }
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) > 0
}
