import type { AuthFailure, Refusal } from './refusal.ts'
import type { Scope } from './scope.ts'

/** The two endpoint types, which the documented API limits separately. */
export type Endpoint = 'api' | 'oauth'

export const WINDOW_TYPES = ['api', 'oauth', 'browser'] as const

/** Whose requests share a limit: those of an endpoint type, or all that carry the session of a browser. */
export type WindowType = (typeof WINDOW_TYPES)[number]

/** Which windows exist under every configuration: their metrics have series from the start. */
export const ALWAYS_COUNTED: Readonly<Record<WindowType, boolean>> = {
  api: true,
  oauth: true,
  browser: false,
}

/** The requests that the sidecar answers itself. All but those for tokens have to be switched on. `revocation`: RFC 7009. `preflight`: CORS. */
export type OwnEndpoint = 'token' | 'revocation' | 'login' | 'logout' | 'preflight'

/** The paths at which Postern answers itself. Any other spelling of one is an ordinary path of the device (C1). */
export const OWN_PATHS = { token: '/oauth/token', login: '/oauth/login', logout: '/oauth/logout' } as const

/** Which requests share a rate-limit window: those of one client, one grant, one name, or all (C17). */
export type Per = 'client' | 'grant' | 'name' | 'device'

/** The facts about a request that its head alone determines. */
export interface Classified {
  readonly endpoint: Endpoint
  /** Set for the sidecar's own endpoints. */
  readonly ownEndpoint: OwnEndpoint | undefined
  /** Origin form: path and query, byte for byte. */
  readonly target: string
  /** The host that the client asked for. */
  readonly host: string
  /** How the request body is delimited: `null` for no body, its length in bytes, or `chunked` for an unknown length. */
  readonly framing: null | number | 'chunked'
  /** Set if the request is refused regardless of its token. */
  readonly fault: Refusal | undefined
  /** Two parsers could disagree about the request or its end. The connection closes, and no later byte on it is read. */
  readonly ambiguous: boolean
  /** The settings by which it was classified; undefined before that. */
  readonly rules: object | undefined
}

/** The client that a request comes from. */
export interface Client {
  /** The address in canonical form, of the peer or as a trusted proxy reports it; `unix` for a peer on a Unix socket. */
  readonly address: string
  /** The key by which limits count: an IPv4 address, or the /64 prefix of an IPv6 address (C17). */
  readonly key: string
  /** The peer is a trusted proxy: its forwarding headers name the client. */
  readonly peerTrusted: boolean
  /** The number of trusted proxies between the peer and the client: their addresses end `X-Forwarded-For`. */
  readonly hops: number
  /** The address may use the listener: see `listen.allow`. */
  readonly admitted: boolean
}

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

/** The credential of a request, or why there is none. `session`: the id in the cookie of a browser. */
export type Presented =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'none'; readonly cause: Extract<AuthFailure, 'missing' | 'malformed'> }

/** The grant of a request's token, or the reason why the token is not accepted; `unavailable` if the shared store did not say. */
export type Identity =
  | { readonly kind: 'valid'; readonly grant: string }
  | {
      readonly kind: 'refused'
      readonly cause: AuthFailure
      /** The request carries a session, and a page of another origin may have caused it. */
      readonly foreign?: true
    }
  | { readonly kind: 'unavailable' }

/**
 * The type of the window that decided about a request. A request with a session also counts in a window of the API if `limits.api.per` is
 * `device` or `name`; the window with fewer requests left decides.
 */
export function windowTypeOf({ endpoint, per }: Pick<GateFacts, 'endpoint' | 'per'>): WindowType {
  return endpoint === 'browser' && per !== 'grant' ? 'api' : endpoint
}

/** What the gate finds out and decides about a request: `gate/` is the only writer. */
export interface GateFacts {
  classified: Classified
  client: Client
  /** The request's id: the same towards the device, on the sidecar's own responses and in the access log (C22). */
  requestId: string
  /** The limit that applies to it: that of its endpoint type, or that of sessions. */
  endpoint: WindowType
  /** Which requests share the window that decided. It is `grant` for a session, unless a window of the API decided: see `windowTypeOf`. */
  per: Per
  decision: LimitDecision
  /** When the window closes: Unix time in whole seconds, rounded up. 0: the request was not counted. */
  resetAt: number
  /** Further fields of every response: the rate-limit fields of the draft and those of CORS, if they are switched on. */
  ownFields: readonly string[]
  /** Undefined if no token was looked up. */
  identity: Identity | undefined
  /** What becomes of the request. */
  kind: 'refused' | 'own-endpoint' | 'forward'
  /** The grant of the token that admitted the request, or of the tokens in the response. */
  grant: string | undefined
  /** What the name of that grant may do; undefined without `passwords`. */
  scope: Scope | undefined
  /**
   * A public path or an `allow` admits it, for its path and method only. So the device gets none of its fields that name another path or
   * method (`http/overrides.ts`).
   */
  confined: boolean
  /** The request gets the sidecar's own login at the device, if it has one. */
  signedIn: boolean
  /** Why the sidecar refuses the request. Stations behind the gate refuse, too. */
  refusal: Refusal | undefined
  /** The refusal that a gate that only observes would otherwise have sent. */
  wouldRefuse: Refusal | undefined
  /** Why an admitted request was ended early: its grant is over, or a reload no longer admits it. */
  endedFor: Refusal | undefined
  /** When the request head was read (ms on the monotonic clock). */
  start: number
  /** How long the gate waited for another process: the shared store (ms). */
  lookup: number
  /** Milliseconds from the request head to the end. */
  duration: number
}
