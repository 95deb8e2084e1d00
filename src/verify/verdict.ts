import type { Endpoint } from '../http/admission.ts'
import { described, type Received } from './exchange.ts'
import type { VerifyOptions } from './options.ts'
import { type OutsideId, PROMISES } from './promises.ts'

/** What one response, or one window, did that the clause forbids. No text contains a password or a token. */
export interface Departure {
  /** In words: `GET / with a valid token`. */
  readonly sent: string
  /** Such as `200 without X-RateLimit-Reset`. */
  readonly came: string
  readonly wanted: string
  /** Such as `RFC 6749 §5.1` or `device API §8`. */
  readonly clause: string
}

/** What a round found out about a promise. `untested`: this part of the promise cannot be decided here, and why. */
export type Judgement = { readonly promise: OutsideId } & (
  | { readonly kind: 'kept'; readonly note?: string | undefined }
  | ({ readonly kind: 'broken' } & Departure)
  | { readonly kind: 'untested'; readonly reason: string }
)

export type Broken = Extract<Judgement, { readonly kind: 'broken' }>

/** @param clause default: those of the promise */
export function broken(
  promise: OutsideId,
  sent: string,
  came: string | Received,
  wanted: string,
  clause: string = PROMISES[promise].clause,
): Broken {
  const inWords = typeof came === 'string' ? came : described(came)
  return { promise, kind: 'broken', sent, came: inWords, wanted, clause }
}

/** These promises are kept unless something else breaks them. */
export function kept(promises: readonly OutsideId[], note?: string): Judgement[] {
  return promises.map((promise) => ({ promise, kind: 'kept', note }))
}

export function untested(promises: readonly OutsideId[], reason: string): Judgement[] {
  return promises.map((promise) => ({ promise, kind: 'untested', reason }))
}

/** What is known of a promise at the end. */
export interface Verdict {
  readonly id: OutsideId
  readonly sentence: string
  readonly clause: string
  readonly result: 'kept' | 'broken' | 'not testable'
  readonly departures: readonly Departure[]
  /** Observations such as `the refresh token rotates`, and the parts of the promise that were not tested. */
  readonly notes: readonly string[]
}

/** Broken if one judgement says so; kept if one says so and none breaks it. */
export function verdictOf(id: OutsideId, judgements: readonly Judgement[], quick = false): Verdict {
  const { sentence, clause } = PROMISES[id]
  const own = judgements.filter(({ promise }) => promise === id)
  const departures = own
    .filter((each) => each.kind === 'broken')
    .map(({ sent, came, wanted, clause }) => ({ sent, came, wanted, clause }))
  const isKept = own.some(({ kind }) => kind === 'kept')
  const result = departures.length > 0 ? 'broken' : isKept ? 'kept' : 'not testable'
  const notes = own.flatMap((each) => {
    if (each.kind === 'kept') return each.note ?? []
    if (each.kind === 'broken') return []
    return result === 'not testable' ? each.reason : `not tested: ${each.reason}`
  })
  if (own.length === 0) notes.push(quick ? 'left out by --quick' : 'no request of this run shows it')
  return { id, sentence, clause, result, departures, notes: [...new Set(notes)] }
}

/** Response times (ms); all 0 if there are no responses. */
export interface Latencies {
  readonly responses: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** One flood: what came back, and how fast. `refusals` are to the end of each 429, `beside` to the head of each response. */
export interface FloodFigures {
  readonly endpoint: Endpoint
  readonly connections: number
  readonly seconds: number
  readonly passed: number
  readonly refusals: Latencies
  readonly beside: Latencies
}

/** What a round, or a whole run, does to the server, at most, apart from floods. `seconds` is an estimate with all waits. */
export interface Cost {
  readonly logins?: number
  /** Logins with a wrong or an empty password: a server may count them. */
  readonly wrongPasswords?: number
  readonly requests: number
  readonly seconds: number
}

/** The keys are those of the JSON document: docs/verifying.md has what each says. `floods` is undefined if the run has none. */
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
  /** Before the first request. */
  announce(plan: Plan): void
  /** A line about a check that takes long. */
  progress(text: string): void
  /** As soon as nothing that follows can change the verdict. */
  decided(verdict: Verdict): void
  finished(report: Report): void
}
