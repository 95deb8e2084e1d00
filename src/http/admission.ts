import type { DeviceTrace } from './device-trace.ts'
import type { Fields } from './fields.ts'
import type { AuthFailure, Refusal } from './refusal.ts'

/** The two endpoint types, which the documented API limits separately. */
export type Endpoint = 'api' | 'oauth'

/** Which requests share a rate-limit window: those of one client, those of one grant, or all (C17). */
export type Per = 'client' | 'grant' | 'device'

/** Whether the limit admits a request, and the figures for its rate-limit fields. */
export interface LimitDecision {
  readonly admitted: boolean
  readonly limit: number
  readonly remaining: number
  /** Time until the window closes (ms). */
  readonly closesIn: number
  /** The window is counted in the shared store, for several sidecars together. */
  readonly shared?: boolean
  /** The table was full, so the request counts in the window that all clients beyond `limits.max_keys` share. */
  readonly overflow?: boolean
}

/** The grant of a request's token, or the reason why the token is not accepted; `unavailable` if the shared store did not say. */
export type Identity =
  | { readonly kind: 'valid'; readonly grant: string }
  | { readonly kind: 'refused'; readonly cause: AuthFailure }
  | { readonly kind: 'unavailable' }

/** What every admission contains. */
interface AdmissionBase {
  /** The request's id: the same towards the device, on the sidecar's own responses and in the access log (C22). */
  readonly requestId: string
  readonly endpoint: Endpoint
  /** The sidecar's own endpoint that the request is for; undefined if it is for the device. */
  readonly ownEndpoint: OwnEndpoint | undefined
  /** The client's address: the peer, or the address that a trusted proxy reports. */
  readonly client: string
  /** The peer is a trusted proxy, so its forwarding fields count. */
  readonly peerTrusted: boolean
  /** Whose window the request counts in. */
  readonly per: Per
  readonly decision: LimitDecision
  /** Undefined if no token was looked up. */
  readonly identity: Identity | undefined
  /** The rate-limit fields that every response must carry (C16). */
  readonly limitFields: Fields
  /** How the request body is delimited: `null` for no body, its length in bytes, or `chunked` for an unknown length. */
  readonly framing: null | number | 'chunked'
}

/** Whether the request announces a body that is not empty. */
export function hasBody({ framing }: Pick<AdmissionBase, 'framing'>): boolean {
  return framing !== null && framing !== 0
}

export interface Refused extends AdmissionBase {
  readonly kind: 'refused'
  readonly refusal: Refusal
  /** The request is malformed HTTP: nothing after it on the connection may be read as a request (request smuggling). */
  readonly close: boolean
}

/** The endpoints that the sidecar serves itself: tokens, and their revocation (RFC 7009) if it is switched on. */
export type OwnEndpoint = 'token' | 'revocation'

/** A request that the sidecar serves itself. */
export interface OwnEndpointRequest extends AdmissionBase {
  readonly kind: 'own-endpoint'
  readonly ownEndpoint: OwnEndpoint
}

declare const admitted: unique symbol

/**
 * The permission to reach the device. Only `gate/admit.ts` creates one, and `forward/` accepts nothing else, so code that skips
 * the limit or the token check does not compile (`test/types/admission.ts` verifies this).
 */
export interface Forward extends AdmissionBase {
  readonly [admitted]: true
  readonly kind: 'forward'
  /** The grant of the request's token; undefined if the request needed none. */
  readonly grant: string | undefined
  /** The refusal that a gate that only observes would otherwise have sent. */
  readonly wouldRefuse: Refusal | undefined
  /** What happens to the request at the device. */
  readonly trace: DeviceTrace
  /** The target in origin form, byte for byte. */
  readonly target: string
  /** The host that the client asked for. */
  readonly host: string
}

export type Admission = Refused | OwnEndpointRequest | Forward

/** The refusal that a gate that only observes would otherwise have sent; undefined if there is none. */
export function wouldRefuse(admission: Admission): Refusal | undefined {
  return admission.kind === 'forward' ? admission.wouldRefuse : undefined
}
