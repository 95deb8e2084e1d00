import { readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../system/clock.ts'
import { ensureFolder, writeFlushed } from '../system/own-files.ts'
import { codeOf } from '../system/setup-error.ts'

/** A bound past which the device refused, or let requests hang. It survives a restart, and is tried again. */
export interface Ceiling {
  readonly limit: number
  /** When one more place is tried (ms). */
  readonly until: number
  /** The time between two attempts (ms). It doubles up to a day. */
  readonly wait: number
}

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** The ceiling after the device has shown that it has no room above `limit`, at `now` (ms). */
export function nextCeiling(before: Ceiling | undefined, limit: number, now: number): Ceiling {
  const wait = before === undefined ? HOUR : Math.min(2 * before.wait, DAY)
  return { limit, until: now + wait, wait }
}

/** One more place is tried. Undefined if it is not time yet. */
export function attemptAt(ceiling: Ceiling, now: number): Ceiling | undefined {
  const { limit, until, wait } = ceiling
  return now < until ? undefined : { limit: limit + 1, until: now + wait, wait }
}

/** What was found past which bounds devices refuse, kept over restarts. */
export interface Ceilings {
  /** @param service its path in `upstream.routes`; empty for the main service */
  of(service: string): Ceiling | undefined
  /** Keeps it in place of the one before; its file is written at once. */
  keep(service: string, ceiling: Ceiling | undefined): void
}

/**
 * Reads `ceilings.json` in the state folder; times in it are of the wall clock. A file that is missing or unusable is the same as none.
 *
 * @param onFailure the file cannot be read or written: what is learned does not survive a restart
 */
export function openCeilings(folder: string, clock: Clock, onFailure: (error: unknown) => void): Ceilings {
  const path = join(folder, 'ceilings.json')
  const ahead = clock.wall() - clock.monotonic()
  const kept = new Map<string, Ceiling>()
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
      if (isCeiling(value)) kept.set(service, soon(shifted(value, -ahead), clock.monotonic()))
    }
  })
  return {
    of: (service) => kept.get(service),
    keep(service, ceiling) {
      if (kept.get(service) === ceiling) return
      if (ceiling === undefined) kept.delete(service)
      else kept.set(service, ceiling)
      attempt(() => {
        const entries = [...kept].map(([name, each]) => [name, shifted(each, ahead)])
        ensureFolder(folder)
        renameSync(writeFlushed(path, JSON.stringify(Object.fromEntries(entries))), path)
      })
    },
  }
}

/** The same ceiling on another clock, `offset` (ms) ahead. */
function shifted({ limit, until, wait }: Ceiling, offset: number): Ceiling {
  return { limit, until: Math.round(until + offset), wait }
}

/** A clock that was set wrong does not delay the next attempt. */
function soon(ceiling: Ceiling, now: number): Ceiling {
  return { ...ceiling, until: Math.min(ceiling.until, now + ceiling.wait) }
}

function isCeiling(value: unknown): value is Ceiling {
  if (typeof value !== 'object' || value === null) return false
  const { limit, until, wait }: Partial<Ceiling> = value
  return (
    Number.isInteger(limit) &&
    Number(limit) > 0 &&
    Number.isFinite(until) &&
    Number(wait) > 0 &&
    Number(wait) <= DAY
  )
}
