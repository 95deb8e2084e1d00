import type { Fields } from './fields.ts'
import type { Refusal } from './refusal.ts'

/** The two endpoint types that the device's document limits separately. */
export type Endpoint = 'api' | 'oauth'

/** What every admission knows, refused or not. */
interface Passed {
  /** The request's id: the same towards the device, on the sidecar's own answers and in the access line (C22). */
  readonly requestId: string
  readonly endpoint: Endpoint
  /** The address that counts as the client's: the peer, or what a trusted proxy says of it. */
  readonly client: string
  /** The rate-limit fields that every response must carry (C16). */
  readonly limitFields: Fields
  /** How the request body is framed: `null` for none, a length in bytes, or `chunked` where it ends when it ends. */
  readonly framing: null | number | 'chunked'
}

/** Whether the request announces a body that is not empty. */
export function hasBody({ framing }: Pick<Passed, 'framing'>): boolean {
  return framing !== null && framing !== 0
}

export interface Refused extends Passed {
  readonly kind: 'refused'
  readonly refusal: Refusal
  /** The request was not well formed HTTP: nothing behind it on the connection may be read as a request. */
  readonly close: boolean
}

/** The endpoints that the sidecar serves itself: tokens, and their revocation (RFC 7009) if it is switched on. */
export type OwnEndpoint = 'token' | 'revocation'

export interface TokenRequest extends Passed {
  readonly kind: 'token-endpoint'
  readonly ownEndpoint: OwnEndpoint
}

declare const admitted: unique symbol

/**
 * Leave to reach the device. Only `gate/admit.ts` makes one, and the upstream takes nothing else, so a path that
 * skips the limit or the token check does not compile (`test/types/admission.ts` pins that).
 */
export interface Forward extends Passed {
  readonly [admitted]: true
  readonly kind: 'forward'
  /** The grant whose token was shown; undefined where none was needed. */
  readonly grant: string | undefined
  /** What would have been answered if the gate were not only observing. */
  readonly wouldRefuse: Refusal | undefined
  /** The peer's own forwarding headers are believed. */
  readonly peerTrusted: boolean
  /** The target in origin form, byte for byte. */
  readonly target: string
  /** The host that the client asked for. */
  readonly host: string
}

export type Admission = Refused | TokenRequest | Forward
