import type { OutsideId } from '../../promises/promises.ts'
import type { VerifyOptions } from '../options.ts'
import type { Stage } from '../stage.ts'
import type { Departure, Finding } from '../verdict.ts'

/** What a round does to the server, at most. */
export interface Cost {
  readonly logins?: number
  readonly wrongPasswords?: number
  readonly requests: number
  /** Estimate, with the waits for windows. */
  readonly seconds: number
}

/** A part of a run that sends requests and judges the responses. */
export interface Round {
  readonly promises: readonly OutsideId[]
  /** Undefined if the options leave it out. */
  readonly cost: (options: VerifyOptions) => Cost | undefined
  readonly run: (stage: Stage) => Promise<readonly Finding[]>
}

/** The findings about a promise that was checked: broken by each departure, or kept. */
export function conclude(
  promise: OutsideId,
  departures: readonly (Departure | undefined)[],
  note?: string,
): Finding[] {
  const found = departures.filter((departure) => departure !== undefined)
  if (found.length > 0) return found.map((departure) => ({ promise, kind: 'broken', ...departure }))
  return [{ promise, kind: 'kept', ...(note === undefined ? {} : { note }) }]
}

export function untested(promises: readonly OutsideId[], reason: string): Finding[] {
  return promises.map((promise) => ({ promise, kind: 'untested', reason }))
}
