import type { Endpoint } from '../http/admission.ts'
import type { VerifyOptions } from './options.ts'
import { type OutsideId, PROMISES } from './promises.ts'
import { described, type Received } from './question.ts'

/** A response or a window that the clause forbids. No text contains a password or a token. */
export interface Departure {
  /** In words: `GET / with a valid token`. */
  readonly sent: string
  /** Such as `200 without X-RateLimit-Reset`. */
  readonly came: string
  readonly wanted: string
  /** Such as `RFC 6749 §5.1` or `device API §8`. */
  readonly clause: string
}

/** The result of a promise at the end of a run. */
export interface Verdict {
  readonly id: OutsideId
  readonly sentence: string
  readonly clause: string
  readonly result: 'kept' | 'broken' | 'not testable'
  readonly departures: readonly Departure[]
  /** Why the promise is not testable, and observations, such as `the refresh token stays the same`. */
  readonly notes: readonly string[]
}

/** The findings of a run about the promises so far. */
export class Findings {
  readonly #departures: (Departure & { readonly promise: OutsideId })[] = []
  readonly #untestable: (readonly [promise: OutsideId, reason: string])[] = []
  readonly #kept: (readonly [promise: OutsideId, note: string | undefined])[] = []

  /** @param clause default: the clauses of the promise */
  broken(
    promise: OutsideId,
    sent: string,
    came: string | Received,
    wanted: string,
    clause: string = PROMISES[promise].clause,
  ): void {
    const inWords = typeof came === 'string' ? came : described(came)
    this.#departures.push({ promise, sent, came: inWords, wanted, clause })
  }

  /** Notes that these promises are kept, unless a departure or an untestable part is found. `note`: an observation. */
  kept(promises: readonly OutsideId[], note?: string): void {
    for (const promise of promises) this.#kept.push([promise, note])
  }

  /** Notes that a part of these promises cannot be decided, and why. A departure counts all the same. */
  untestable(promises: readonly OutsideId[], reason: string): void {
    for (const promise of promises) this.#untestable.push([promise, reason])
  }

  isBroken(id: OutsideId): boolean {
    return this.#departures.some(({ promise }) => promise === id)
  }

  /** `broken` with any departure; `not testable` if a part could not be decided, or no response showed it; otherwise `kept`. */
  verdictOf(id: OutsideId, quick = false): Verdict {
    const { sentence, clause } = PROMISES[id]
    const own = this.#departures.filter(({ promise }) => promise === id)
    const departures = own.map(({ promise: _, ...departure }) => departure)
    const kept = this.#kept.filter(([promise]) => promise === id)
    const reasons = this.#untestable.flatMap(([promise, reason]) => (promise === id ? [reason] : []))
    if (own.length + kept.length + reasons.length === 0)
      reasons.push(quick ? 'left out by --quick' : 'no request of this run shows it')
    const result = departures.length > 0 ? 'broken' : reasons.length > 0 ? 'not testable' : 'kept'
    const said = result === 'broken' ? reasons.map((reason) => `not tested: ${reason}`) : reasons
    const notes = new Set([...said, ...kept.flatMap(([, note]) => note ?? [])])
    return { id, sentence, clause, result, departures, notes: [...notes] }
  }
}

/** Response times (ms); all 0 if there are no responses. */
export interface Latencies {
  readonly responses: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/**
 * The figures of one flood. `refusals`: times to the end of each 429. `beside`: times to the head of each response to the client beside.
 */
export interface FloodFigures {
  readonly endpoint: Endpoint
  readonly connections: number
  readonly seconds: number
  readonly passed: number
  readonly refusals: Latencies
  readonly beside: Latencies
}

/** The most that a part of a run does to the server, without floods. `seconds` is an estimate that includes all waits. */
export interface Cost {
  readonly logins?: number
  /** Logins with a wrong or an empty password: a server may count them. */
  readonly wrongPasswords?: number
  readonly requests: number
  readonly seconds: number
}

/** The keys are those of the JSON document, which docs/verifying.md describes. `floods` is undefined if the run has none. */
export interface Plan extends Required<Cost>, Pick<VerifyOptions, 'path' | 'revocationPath'> {
  readonly url: string
  readonly promises: readonly OutsideId[]
  readonly notTestable: readonly OutsideId[]
  readonly floods: VerifyOptions['flood'] | undefined
  readonly usesUpLimits: boolean
  readonly otherSpellings: boolean
  readonly tokenInQuery: boolean
}

/** The keys are those of the JSON document. The promises are in the order of their ids, and `startedAt` is in ISO 8601. */
export interface Report {
  readonly url: string
  readonly version: string
  readonly startedAt: string
  readonly seconds: number
  readonly requests: number
  readonly result: 'kept' | 'broken'
  readonly promises: readonly Verdict[]
  readonly floods: readonly FloodFigures[]
  readonly tokens: string
}

export interface Reporter {
  /** Called before the first request. */
  announce(plan: Plan): void
  /** Called with a line about a check that takes long. */
  progress(text: string): void
  /** Called as soon as no later part can change the verdict. */
  decided(verdict: Verdict): void
  finished(report: Report): void
}
