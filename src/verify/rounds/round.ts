import type { OutsideId } from '../../promises/promises.ts'
import type { VerifyOptions } from '../options.ts'
import type { Stage } from '../stage.ts'
import type { Broken, Departure, Finding } from '../verdict.ts'

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
  /** Those that need this round. It may also find a promise broken that others are for. */
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
  if (found.length > 0) return found.map((departure) => broken(promise, departure))
  return [{ promise, kind: 'kept', ...(note === undefined ? {} : { note }) }]
}

/** All that was found, and `kept` for each of these promises that nothing breaks. */
export function concludeAll(promises: readonly OutsideId[], found: readonly Broken[]): Finding[] {
  const intact = promises.filter((id) => found.every(({ promise }) => promise !== id))
  return [...found, ...intact.map((promise) => ({ promise, kind: 'kept' }) as const)]
}

export function broken(promise: OutsideId, departure: Departure): Broken {
  return { promise, kind: 'broken', ...departure }
}

export function untested(promises: readonly OutsideId[], reason: string): Finding[] {
  return promises.map((promise) => ({ promise, kind: 'untested', reason }))
}
