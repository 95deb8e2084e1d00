import type { OutsideId } from '../promises/promises.ts'

/** The two kinds of endpoints that have windows of their own: `/oauth/token`, and everything else (C13). */
export type Endpoint = 'api' | 'oauth'

export const ENDPOINTS: readonly Endpoint[] = ['api', 'oauth']

/** As lines and reports name it. */
export function endpointName(endpoint: Endpoint): 'API' | '/oauth/token' {
  return endpoint === 'api' ? 'API' : '/oauth/token'
}

/** What one response, or one window, did that the clause forbids. No text contains a password or a token. */
export interface Departure {
  /** In words: `GET / with a valid token`. */
  readonly sent: string
  /** Such as `200 without X-RateLimit-Reset`. */
  readonly came: string
  /** What should have come. */
  readonly wanted: string
  /** Such as `RFC 6749 §5.1` or `device API §8`. */
  readonly clause: string
}

/** What a round found out about a promise. `untested`: this part of the promise cannot be decided here, and why. */
export type Finding = { readonly promise: OutsideId } & (
  | { readonly kind: 'kept'; readonly note?: string }
  | ({ readonly kind: 'broken' } & Departure)
  | { readonly kind: 'untested'; readonly reason: string }
)

/** A promise that a response or a window breaks. */
export type Broken = Extract<Finding, { readonly kind: 'broken' }>

/** What is known of a promise at the end. */
export interface Verdict {
  readonly id: OutsideId
  readonly sentence: string
  /** Where the documented API or an RFC demands it. */
  readonly clause: string
  readonly result: 'kept' | 'broken' | 'not testable'
  readonly departures: readonly Departure[]
  /** Observations such as `the refresh token rotates`, and the parts of the promise that were not tested. */
  readonly notes: readonly string[]
}

/** Response times (ms); all 0 if there are no responses. */
export interface Latencies {
  readonly responses: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** One flood: what came back, and how fast. */
export interface FloodFigures {
  readonly endpoint: Endpoint
  readonly connections: number
  readonly seconds: number
  readonly passed: number
  /** To the end of each 429. */
  readonly refusals: Latencies
  /** To the head of each response to the client that stayed within the limit of the other endpoint. */
  readonly beside: Latencies
}

/** What a run is going to do to the server. */
export interface Plan {
  /** Origin of the server. */
  readonly url: string
  /** The target of every request to the API. */
  readonly path: string
  /** Those that the run checks. */
  readonly promises: readonly OutsideId[]
  /** Those that it was asked for and cannot check, because of its options or because no run can. */
  readonly notTestable: readonly OutsideId[]
  /** Logins with the right password, at most. */
  readonly logins: number
  /** Logins with a wrong or an empty password, at most: a server may count them. */
  readonly wrongPasswords: number
  /** Requests at most, without the floods. */
  readonly requests: number
  /** Estimate, with all waits. */
  readonly seconds: number
  /** Undefined if the run has no flood. */
  readonly floods: { readonly seconds: number; readonly connections: number } | undefined
  /** Whether the run uses up the limits of its address. */
  readonly usesUpLimits: boolean
  /** Whether requests go to other spellings of the paths. */
  readonly otherSpellings: boolean
  /** Whether a valid token goes into a query, where logs may keep it. */
  readonly tokenInQuery: boolean
  /** The path at which the run revokes its tokens at the end; undefined if it does not try. */
  readonly revocationPath: string | undefined
}

/** The result of a run. */
export interface Report {
  readonly url: string
  /** Version of Postern. */
  readonly version: string
  /** ISO 8601. */
  readonly startedAt: string
  readonly seconds: number
  /** Requests that were sent, the floods included. */
  readonly requests: number
  readonly result: 'kept' | 'broken'
  /** In the order of their ids. */
  readonly promises: readonly Verdict[]
  readonly floods: readonly FloodFigures[]
  /** What became of the tokens of the run, in words. */
  readonly tokens: string
}

/** Receives the events of a run. */
export interface Reporter {
  /** Before the first request. */
  announce(plan: Plan): void
  /** A line about a check that takes long. */
  progress(text: string): void
  /** As soon as nothing that follows can change the verdict. */
  decided(verdict: Verdict): void
  finished(report: Report): void
}
