import type { AuthFailure, Refusal } from './refusal.ts'
import type { Scope } from './scope.ts'

/** The two endpoint types, for which the documented API has separate rate limits. */
export type Endpoint = 'api' | 'oauth'

export const WINDOW_TYPES = ['api', 'oauth', 'browser'] as const

/** The requests that share a limit: those of an endpoint type, or all requests with the session of a browser. */
export type WindowType = (typeof WINDOW_TYPES)[number]

/** The window types that exist under every configuration. Their metrics have series from the start. */
export const ALWAYS_COUNTED: Readonly<Record<WindowType, boolean>> = {
  api: true,
  oauth: true,
  browser: false,
}

/**
 * The endpoints that the sidecar serves itself. All but `token` must be switched on. `revocation`: RFC 7009. `preflight`: CORS. `redirect`:
 * every path at the port of `listen.redirect`.
 */
export type OwnEndpoint = 'token' | 'revocation' | 'login' | 'logout' | 'preflight' | 'redirect'

/** The paths of the sidecar's own endpoints. Any other spelling of such a path is an ordinary path of the device (C1). */
export const OWN_PATHS = { token: '/oauth/token', login: '/oauth/login', logout: '/oauth/logout' } as const

/** The requests that share a rate-limit window: those of one client, one grant, one name, or all requests to the device (C17). */
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
  /** The refusal of a request that is refused whatever its token; otherwise undefined. */
  readonly fault: Refusal | undefined
  /** Two parsers could disagree about the request or its end. The connection closes, and no later byte on it is read. */
  readonly ambiguous: boolean
  /** The settings by which the request was classified; undefined before that. */
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
  /** The number of trusted proxies between the peer and the client. Their addresses are the last ones in `X-Forwarded-For`. */
  readonly hops: number
  /** `listen.allow` admits the address. */
  readonly admitted: boolean
}

/** The decision of a rate limit about one request, and the figures for the rate-limit fields. */
export interface LimitDecision {
  readonly admitted: boolean
  readonly limit: number
  readonly remaining: number
  /** Time until the window closes (ms). */
  readonly closesIn: number
  /** The shared store counts the window, for several sidecars together. */
  readonly shared?: boolean
  /** The table was full, so the request counts in the window that all clients beyond `limits.max_keys` share. */
  readonly overflow?: boolean
}

/** The credential of a request, or the reason why there is none. `session`: the id in the session cookie of a browser. */
export type Presented =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'session'; readonly id: string }
  | { readonly kind: 'none'; readonly cause: Extract<AuthFailure, 'missing' | 'malformed'> }

/** The grant of a request's token, or the reason of its refusal. `unavailable`: the shared store did not answer. */
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
 * The type of the window that decided about a request. A request with a session also counts in an API window if `limits.api.per` is
 * `device` or `name`. Of the two, the window with fewer remaining requests decides.
 */
export function windowTypeOf({ endpoint, per }: Pick<GateFacts, 'endpoint' | 'per'>): WindowType {
  return endpoint === 'browser' && per !== 'grant' ? 'api' : endpoint
}

/** The facts and decisions of the gate about a request: `gate/` is the only writer. */
export interface GateFacts {
  classified: Classified
  client: Client
  /** The request's id: the same towards the device, on the sidecar's own responses and in the access log (C22). */
  requestId: string
  /** The limit that applies: that of the endpoint type, or `browser` for a request with a session. */
  endpoint: WindowType
  /** The requests that share the window that decided. `grant` for a session, unless an API window decided: see `windowTypeOf`. */
  per: Per
  decision: LimitDecision
  /** When the window closes: Unix time in whole seconds, rounded up. 0: the request was not counted. */
  resetAt: number
  /** Further fields of every response: the rate-limit fields of the IETF draft and the CORS fields, if they are switched on. */
  ownFields: readonly string[]
  /** Undefined if no token was looked up. */
  identity: Identity | undefined
  /** The decision of the gate. */
  kind: 'refused' | 'own-endpoint' | 'forward'
  /** The grant of the token that admitted the request, or of the tokens in the response. */
  grant: string | undefined
  /** The permissions of that grant's name; undefined without `passwords`. */
  scope: Scope | undefined
  /**
   * A public path or an `allow` rule admits the request, for its path and method only. So fields that name another path or method are not
   * forwarded (`http/overrides.ts`).
   */
  confined: boolean
  /** The request is forwarded with the sidecar's own login at the device, if there is one. */
  signedIn: boolean
  /** The refusal of the request by the gate or by a later room. */
  refusal: Refusal | undefined
  /** The refusal that a gate with `enforce: false` would send if it were enforced. */
  wouldRefuse: Refusal | undefined
  /** The reason for the early end of an admitted request: its grant has ended, or a reload no longer admits it. */
  endedFor: Refusal | undefined
  /** When the request head was read (ms on the monotonic clock). */
  start: number
  /** How long the gate waited for the shared store (ms). */
  lookup: number
  /** The time from the request head to the end (ms). */
  duration: number
}
