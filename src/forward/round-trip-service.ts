import type { Breaker } from '../device/breaker.ts'
import type { Connections } from '../device/connections.ts'
import { failureOf } from '../device/failure.ts'
import type { Classified } from '../http/admission.ts'
import type { ClientSide } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import type { BufferedBody } from './buffered-body.ts'
import type { FinishingUploads } from './finishing-uploads.ts'
import type { Learner } from './learner.ts'
import type { LongPaths } from './long-paths.ts'
import type { Pace } from './pace.ts'
import type { RequestFieldSettings } from './request-fields.ts'
import type { ResponseFieldSettings } from './response-fields.ts'
import type { Streams } from './streams.ts'

export interface RoundTripService {
  readonly connections: Connections
  /** How long a client may pause within its request body (ms). */
  readonly uploadTimeout: number
  /** The uploads that the device has whole, after their clients have left. Undefined: they are aborted, like every other request. */
  readonly finishing?: FinishingUploads | undefined
  /** How fast an upload must be to keep its place. */
  readonly pace: Pace
  readonly downloadPace: Pace
  /** How header fields change on the way. */
  readonly fields: { readonly request: RequestFieldSettings; readonly response: ResponseFieldSettings }
  /** How long a response without a length may last before it is a stream (ms). A path whose responses begin later is a long one. */
  readonly streamAfter: number
  readonly longPaths?: LongPaths | undefined
  /** Undefined if no response may be a stream. */
  readonly streams?: Streams | undefined
  /** Undefined if the number of places is fixed. */
  readonly learner?: Learner | undefined
  readonly breaker: Breaker
  readonly clock: Clock
  readonly events: {
    /** @param duration time (ms) from sending the request to the head of the device's response */
    readonly responded: (duration: number) => void
  }
}

/** What replaces the client, or parts of its request, in a request to the device. */
export interface Substitutes {
  /** Receives the response in place of the client. */
  readonly client?: ClientSide
  readonly fields?: Fields
  readonly framing?: Classified['framing']
  /** A buffered body, sent in place of the client's. */
  readonly body?: BufferedBody | undefined
}

export type RoundTripEnd =
  | { readonly kind: 'relayed' }
  /** The client has no response yet, so the caller may refuse it. `silent`: the device sent no byte. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly silent: boolean }
  /** The response broke off after its head was sent, and the client sees it broken. */
  | { readonly kind: 'broken'; readonly error: unknown }
  /** The client left, or got another response, before the device's response ended. */
  | { readonly kind: 'abandoned' }
  /** A bug of the sidecar. It says nothing about the device. */
  | { readonly kind: 'bug'; readonly error: unknown }

/** RFC 9209 §2.3 has two names for a lost connection: one before the first byte of the response, the other after it. */
export function failureIn(end: Extract<RoundTripEnd, { kind: 'failed' | 'broken' }>): UpstreamFailure {
  const failure = failureOf(end.error)
  const begun = end.kind === 'broken' || !end.silent
  return begun && failure === 'connection_terminated' ? 'http_response_incomplete' : failure
}
