import type { Loaded } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import { isBug, reasonOf, SetupError } from '../../system/setup-error.ts'
import { type ExitCode, exitCodeOf } from '../command.ts'
import type { Places } from '../instance.ts'
import type { CheckResult, DeviceLogin, Finding } from './finding.ts'

/** What `check` is asked to look at. */
export interface Asked {
  readonly config: Config
  /** The configuration file, if there is one. */
  readonly file: string | undefined
  readonly places: Places
  /** Pages of the device to request, and a path to post to. */
  readonly pages: readonly string[]
  readonly uploads: string | undefined
}

/** A part of the table: what is tried, when, and a row for each finding. */
interface Part<Subject, Facts> {
  /** What it is tried on; empty if there is nothing to say. Throws `SetupError` for a path that cannot be asked for. */
  readonly subjects: (asked: Asked) => readonly Subject[]
  /** Also with `check --reload`. */
  readonly withReload?: boolean
  readonly about: (subject: Subject) => About
  /** Why nothing is tried, which is no problem; undefined if it is. */
  readonly untried?: (subject: Subject) => string | undefined
  /** Tries it, and collects what the rows need. What it throws is a failure; a bug is thrown on. */
  readonly look: (subject: Subject) => Facts | Promise<Facts>
  /**
   * The findings by name, in the order in which they are looked for: the first row that applies is the result, and the last one always applies.
   * A row may try more, which is spared if one before it applies.
   */
  readonly rows: Readonly<Record<string, (facts: Facts) => Found | Promise<Found>>>
}

type Found = Finding | false | undefined

interface About {
  readonly name: string
  /** The configuration key that it is about. An error of the look can name another. */
  readonly key: string
  /** What a problem means and what to do, where neither its row nor the error of the look says it. */
  readonly meaning: string
  readonly remedy: string
}

/** The result of a check. */
export interface Outcome {
  readonly result: CheckResult
  /** The name of the finding, also `nothing tried` and `look failed`; undefined for a warning of the start. */
  readonly row?: string
  /** 2 if `serve` would not start. */
  readonly exitCode: ExitCode
  readonly tls?: string | undefined
  readonly login?: DeviceLogin | undefined
}

/** Where a key is set, for the message of a failure. */
type LocationOf = Loaded['locationOf']

/** A part of the table that can be run. */
export function check<Subject, Facts>(part: Part<Subject, Facts>) {
  const { subjects, about, withReload = false, rows } = part
  /** Rejects only for a bug. */
  const run = (subject: Subject, locationOf: LocationOf = () => undefined): Promise<Outcome> =>
    outcomeOf(part, subject, about(subject), locationOf)
  return {
    rows: Object.keys(rows),
    withReload,
    run,
    /** A run for each subject. */
    runs: (asked: Asked, locationOf: LocationOf): readonly (() => Promise<Outcome>)[] =>
      subjects(asked).map((subject) => () => run(subject, locationOf)),
  }
}

async function outcomeOf<Subject, Facts>(
  { untried, look, rows }: Part<Subject, Facts>,
  subject: Subject,
  about: About,
  locationOf: LocationOf,
): Promise<Outcome> {
  const instead = untried?.(subject)
  if (instead !== undefined) return { row: 'nothing tried', ...resultOf(about, instead, locationOf) }
  try {
    const facts = await look(subject)
    for (const [row, find] of Object.entries(rows)) {
      const found = await find(facts)
      if (found !== false && found !== undefined) return { row, ...resultOf(about, found, locationOf) }
    }
    throw new TypeError(`no row of ${about.name} applies`)
  } catch (error) {
    if (isBug(error)) throw error
    const { key, reason, remedy } = error instanceof SetupError ? error : new SetupError(reasonOf(error))
    const found = { failed: reason, remedy, exitCode: exitCodeOf(error) }
    return { row: 'look failed', ...resultOf(about, found, locationOf, key) }
  }
}

/** @param named the key that is at fault, if it is known to be another one */
function resultOf(about: About, found: Finding, locationOf: LocationOf, named?: string): Outcome {
  const { name } = about
  if (typeof found === 'string')
    return { result: { name, result: 'ok', message: found, meaning: null, remedy: null }, exitCode: 0 }
  const hints = { meaning: found.meaning ?? about.meaning, remedy: found.remedy ?? about.remedy }
  if ('warning' in found) {
    const { warning: message, login } = found
    return { result: { name, result: 'warning', message, ...hints }, exitCode: 0, login }
  }
  const { failed, exitCode = 1, tls } = found
  const message = located(about, failed, locationOf, named)
  return { result: { name, result: 'failed', message, ...hints }, exitCode, tls }
}

/** A message behind the place of its key. The key is left out where the name of the check says it. */
function located(about: About, message: string, locationOf: LocationOf, named: string | undefined): string {
  const key = named ?? about.key
  const location = locationOf(key)
  const isSaid = key === about.name || (named ?? location) === undefined
  const text = isSaid ? message : `${key}: ${message}`
  return location === undefined ? text : `${location}: ${text}`
}
