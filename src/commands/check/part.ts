import type { Loaded } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import { abortAfter, type Clock } from '../../system/clock.ts'
import { firstOf, isBug, reasonOf, SetupError } from '../../system/setup-error.ts'
import { type ExitCode, exitCodeOf } from '../command.ts'
import type { InstancePlaces } from '../instance.ts'
import type { CheckResult, DeviceLogin, Finding } from './finding.ts'

/** The input of `check`: the configuration, and paths of the device to request. */
export interface Asked {
  readonly config: Config
  /** The configuration file, if there is one. */
  readonly file: string | undefined
  readonly places: InstancePlaces
  /** The clock for the times of devices. */
  readonly clock: Clock
  /** Pages of the device to request. */
  readonly pages: readonly string[]
  /** A path of the device to post to. */
  readonly uploads: string | undefined
}

/** A part of the table: its subjects, how they are tried, and a row for each finding. */
interface Part<Subject, Facts> {
  /** The subjects of the check; empty if it does not apply. Throws `SetupError` for a path that cannot be requested. */
  readonly subjects: (asked: Asked) => readonly Subject[]
  /** The part also runs with `check --reload`. */
  readonly withReload?: boolean
  readonly about: (subject: Subject) => About
  /** The reason if nothing is tried on a subject, which counts as ok; undefined if it is tried. */
  readonly untried?: (subject: Subject) => string | undefined
  /** How long a look with its rows may take in all. Default: it ends by itself. */
  readonly bound?: (subject: Subject) => Bound
  /**
   * Tries a subject, and collects the facts for the rows. An error is the result `failed`; a bug is thrown on.
   *
   * @param signal the time is over
   */
  readonly look: (subject: Subject, signal: AbortSignal) => Facts | Promise<Facts>
  /**
   * The findings by name, in order. The first row that applies is the result, and the last row always applies. A row may try more. That
   * costs nothing if an earlier row applies.
   */
  readonly rows: Readonly<Record<string, (facts: Facts) => Found | Promise<Found>>>
}

type Found = Finding | false | undefined

interface Bound {
  readonly clock: Pick<Clock, 'after'>
  /** In ms. */
  readonly time: number
}

interface About {
  readonly name: string
  /** The configuration key that the check is about. An error of `look` can name another key. */
  readonly key: string
  /** The consequence of a problem and the remedy, if neither its row nor the error of `look` has its own. */
  readonly meaning: string
  readonly remedy: string
}

/** The result of a check. */
export interface CheckOutcome {
  readonly result: CheckResult
  /** The name of the finding, also `nothing tried`, `look failed` and `not finished`; undefined for a warning of the start. */
  readonly row?: string
  /** 2 if `serve` would not start. */
  readonly exitCode: ExitCode
  readonly tls?: string | undefined
  /** A line of YAML for the section of the service that removes the problem. */
  readonly line?: string | undefined
  readonly login?: DeviceLogin | undefined
}

/** A check of one subject that has not begun. */
export interface CheckRun {
  readonly name: string
  readonly start: () => Promise<CheckOutcome>
}

/** Where a key is set, for the message of a failure. */
type LocationOf = Loaded['locationOf']

/** Makes a part of the table that can be run. */
export function check<Subject, Facts>(part: Part<Subject, Facts>) {
  const { subjects, about, withReload = false, rows } = part
  /** Rejects only for a bug. */
  const run = (subject: Subject, locationOf: LocationOf = () => undefined): Promise<CheckOutcome> =>
    outcomeOf(part, subject, about(subject), locationOf)
  return {
    rows: Object.keys(rows),
    withReload,
    run,
    /** A run for each subject. */
    runs: (asked: Asked, locationOf: LocationOf): readonly CheckRun[] =>
      subjects(asked).map((subject) => ({
        name: about(subject).name,
        start: () => run(subject, locationOf),
      })),
  }
}

async function outcomeOf<Subject, Facts>(
  { untried, bound, look, rows }: Part<Subject, Facts>,
  subject: Subject,
  about: About,
  locationOf: LocationOf,
): Promise<CheckOutcome> {
  const instead = untried?.(subject)
  if (instead !== undefined) return { row: 'nothing tried', ...resultOf(about, instead, locationOf) }
  const limit = bound?.(subject)
  using deadline = limit && abortAfter(limit.clock, limit.time)
  const { signal } = deadline ?? new AbortController()
  const late = () => ({ row: 'not finished', ...resultOf(about, tooLate(limit?.time ?? 0), locationOf) })
  try {
    const facts = await look(subject, signal)
    for (const [row, find] of Object.entries(rows)) {
      const found = await find(facts)
      if (signal.aborted) return late()
      if (found !== false && found !== undefined) return { row, ...resultOf(about, found, locationOf) }
    }
    throw new TypeError(`no row of ${about.name} applies`)
  } catch (failure) {
    const error = firstOf(failure)
    if (isBug(error)) throw error
    if (signal.aborted) return late()
    const { key, reason, remedy } = error instanceof SetupError ? error : new SetupError(reasonOf(error))
    const found = { failed: reason, remedy, exitCode: exitCodeOf(error) }
    return { row: 'look failed', ...resultOf(about, found, locationOf, key) }
  }
}

function tooLate(time: number): Finding {
  return {
    warning: `not finished within ${time / 1000} s, so not everything was tried`,
    meaning: 'the device is slow, or does not end its responses, and clients wait as long',
    remedy: 'look at the log of the device; a longer response_timeout gives it more time',
  }
}

/** @param named the key at fault, if the error names one */
function resultOf(about: About, found: Finding, locationOf: LocationOf, named?: string): CheckOutcome {
  const { name } = about
  if (typeof found === 'string')
    return { result: { name, result: 'ok', message: found, meaning: null, remedy: null }, exitCode: 0 }
  const hints = { meaning: found.meaning ?? about.meaning, remedy: found.remedy ?? about.remedy }
  if ('warning' in found) {
    const { warning: message, login, line } = found
    return { result: { name, result: 'warning', message, ...hints }, exitCode: 0, login, line }
  }
  const { failed, exitCode = 1, tls, line } = found
  const message = located(about, failed, locationOf, named)
  return { result: { name, result: 'failed', message, ...hints }, exitCode, tls, line }
}

/** Puts the location of the key and the key before a message. The key is left out if the check is named after it. */
function located(about: About, message: string, locationOf: LocationOf, named: string | undefined): string {
  const key = named ?? about.key
  const location = locationOf(key)
  const isSaid = key === about.name || (named ?? location) === undefined
  const text = isSaid ? message : `${key}: ${message}`
  return location === undefined ? text : `${location}: ${text}`
}
