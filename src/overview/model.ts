import type { Endpoint, Per, WindowType } from '../http/admission.ts'

/**
 * The JSON that the live page receives. Times are in ms since the Unix epoch, durations in ms, unless a member says otherwise. It contains
 * no secret: no token, no password, no query of a request.
 */

/**
 * `GET page/requests`: at most 100 `RequestRow`s, the latest first, about equally many of each reason. `GET page/requests?id=ID`: the
 * `Explanation` of one request; 404 if it is no longer remembered.
 */
export type { Explanation, RequestRow } from '../record/explanation.ts'

/**
 * `GET page/grants?find=TEXT`: the live grants with this text in the client's address, the id or the label, in any letter case. 400 unless
 * the text has 1 to 100 characters; 503 if too many searches wait, or the shared store does not answer.
 */
export interface GrantsFound {
  readonly matches: number
  /** The most recently used first, at most 100. */
  readonly rows: readonly GrantRow[]
}

/** What happened in one second. */
export interface Point {
  /** The end of the second, and the id of the event. */
  readonly time: number
  /** Requests that ended. */
  readonly requests: number
  /** Refused requests by the `reason` label of `postern_refusals_total`; only reasons that occurred. */
  readonly refusals: Readonly<Record<string, number>>
  /** Requests that ended with a status of 500 and above, of the device or of Postern itself. */
  readonly serverErrors: number
  /** From the request head to the end of the response; null if no request ended. */
  readonly client: Latency | null
  /** From sending a request to the device to the head of its response; null without such a head. */
  readonly device: Latency | null
  /** This and the following members: at the end of the second. */
  readonly inFlight: number
  readonly queued: number
  readonly connections: number
  readonly tunnels: number
}

export interface Latency {
  readonly p50: number
  readonly p99: number
}

/** The facts that do not change while the sidecar runs. */
export interface About {
  /** Differs between two runs of the sidecar, so the page notices a restart. */
  readonly run: string
  readonly version: string
  readonly node: string
  readonly machine: string
  readonly startedAt: number
}

/** The name of an alarm. It is also the section of docs/alerts.md, and the corresponding alert of deploy/postern.rules.yml, if any. */
export type AlarmName =
  | 'NotReady'
  | 'PosternServerErrors'
  | 'PosternDeviceSlow'
  | 'PosternOverloaded'
  | 'PosternQueueing'
  | 'PosternDeviceDown'
  | 'PosternRouteDown'
  | 'PosternSharedStoreDown'
  | 'PosternRateLimiting'
  | 'ManyRefusals'
  | 'ObservingOnly'
  | 'AllowOnTrial'
  | 'PosternMemoryShort'
  | 'MalformedHttp'
  | 'DeviceCrowded'
  | 'PosternDeviceBroke'
  | 'PosternReloadFailed'
  | 'PosternCertificateExpires'
  | 'PosternCertificateInvalid'
  | 'PosternStoreErrors'
  | 'NoPassword'
  | 'PosternTokensUnsaved'
  | 'PosternTokenFileBroken'
  | 'TokenFileCopied'
  | 'PosternTokensEvicted'
  | 'PosternIssuedTokenEnds'
  | 'PosternPasswordGuessing'

/** `critical`: clients cannot use the device. `warning`: a person should look. `note`: it asks for no action. */
export type AlarmLevel = 'critical' | 'warning' | 'note'

/** A fact that an operator should know. `meaning` and `remedy` are sentences, `what` is a sentence without its full stop. */
export interface Alarm {
  readonly name: AlarmName
  /** Stays the same while the alarm lasts. */
  readonly key: string
  readonly level: AlarmLevel
  readonly what: string
  /** When it began; null if the sidecar does not know. */
  readonly since: number | null
  readonly meaning: string
  readonly remedy: string
}

/** The present condition of all parts of the sidecar. */
export interface Condition {
  /** The most urgent first, one for each cause. */
  readonly alarms: readonly Alarm[]
  readonly ready: boolean
  readonly reasons: readonly string[]
  /** `enforce` of the configuration. False: the gate only observes. */
  readonly enforce: boolean
  /** The names whose `allow` is on trial, and the number of requests since the start that it would have refused, or stripped of a field. */
  readonly trials: readonly { readonly name: string; readonly wouldRefuse: number }[]
  /** Sums since the start of the members of the same name in `Point`; `refused`: of all `refusals`. */
  readonly totals: { readonly requests: number; readonly refused: number; readonly serverErrors: number }
  /** The main service first. */
  readonly services: readonly ServiceCondition[]
  /** The sum over all services. */
  readonly load: {
    readonly inFlight: number
    readonly maxInFlight: number
    readonly queued: number
    readonly queueSize: number
    readonly tunnels: number
    readonly maxTunnels: number
  }
  /** The memory that clients make the process hold (bytes). */
  readonly memory: {
    readonly held: number
    readonly limit: number
    /** The present stage of shedding (the `stage` label of `postern_shed_total`); null if nothing is shed. */
    readonly stage: string | null
    /** The connections, streams and requests that were shed since the start. */
    readonly shed: number
  }
  readonly limits: Readonly<Record<Endpoint, LimitCondition> & Partial<Record<WindowType, LimitCondition>>>
  readonly tokens: {
    /** `access` and `refresh`: the live tokens of logins. */
    readonly access: number
    readonly refresh: number
    readonly capacity: number
    /** Tokens that a restart would lose; null without a token file. */
    readonly unsaved: number | null
    /** When this run last set a token file aside that it could not use; null if it never did. */
    readonly setAsideAt: number | null
    /** When the token file was found to be a copy; null if it is no copy. */
    readonly copiedAt: number | null
    /** The issued tokens that a person has to replace before they end, the first to end first. */
    readonly unreplaced: readonly Pick<GrantRow, 'id' | 'label' | 'expiresAt'>[]
  }
  /** Null for cleartext. */
  readonly certificate: { readonly from: number; readonly until: number; readonly selfSigned: boolean } | null
  readonly password: {
    readonly source: 'file' | 'device' | 'hook'
    readonly changedAt: number | null
    /** Why the source cannot be used; null if it can. */
    readonly problem: string | null
    /** The names without a password, each with the reason: the account is locked, has expired or is gone; null if all have one. */
    readonly absent: string | null
  }
  /** The wrong passwords of the last five to ten minutes. */
  readonly wrongPasswords: {
    readonly wrong: number
    /** The number of addresses with wrong passwords. An IPv6 /48 counts as one. */
    readonly addresses: number
    /** The addresses with the most wrong passwords, at most ten. */
    readonly from: readonly string[]
  }
  /** Null without a shared store. */
  readonly store: StoreCondition | null
  /** The latest reload, if it was refused; null if it was applied, or there was none. */
  readonly refusedReload: RefusedReload | null
}

/** The shared store, as this sidecar finds it. */
export interface StoreCondition {
  /** Whether it answers and accepts all commands. */
  readonly up: boolean
  /** Its servers, as the configuration names them. */
  readonly address: string
  /** Why it does not answer or refuses commands; null if it is up. */
  readonly reason: string | null
}

/** A configuration or certificate that was refused: the former one stays in use. */
export interface RefusedReload {
  readonly at: number
  /** What the operator has to correct, with file and line if these are known. Quotes no secret. */
  readonly problems: readonly string[]
}

/** One service of the device. */
export interface ServiceCondition {
  /** The path of a service of `upstream.routes`; null for the main service. */
  readonly route: string | null
  /** The address, without credentials. */
  readonly url: string
  /** Whether the service answers, by the last request or health check; null before the first. */
  readonly up: boolean | null
  /** When `up` last changed; null before the first request. */
  readonly since: number | null
  /** Whether `upstream.health` checks the service. */
  readonly checked: boolean
  /** `open`: requests are refused at once, because the device could not be reached. */
  readonly breaker: 'closed' | 'open'
  /**
   * The last failure of a request or health check, by its name in `postern_upstream_errors_total`, or `status 503` for a health check
   * with that response; null if there was none.
   */
  readonly failure: string | null
  readonly failedAt: number | null
  /** True if the responses of the service are parsed by the tolerant rules. */
  readonly tolerant: boolean
  /** The quirks that its responses have shown since the start. */
  readonly quirks: readonly QuirkCondition[]
  /** The queue for the service. With `upstream.buffer_uploads`, uploads wait in a second queue of this size: the longer of both. */
  readonly queue: { readonly queued: number; readonly size: number; readonly maxInFlight: number }
  /**
   * The most requests that the device takes at once, in a fleet over all sidecars, and what happened above that: it had no room (`guess`),
   * or it broke (`broke`). Null: nothing is known. After a restart, fewer are sent at first: see `queue`.
   */
  readonly ceiling: CeilingCondition | null
}

interface CeilingCondition {
  readonly kind: 'guess' | 'broke'
  readonly limit: number
}

/**
 * A quirk of the device. `stray`: it sends bytes after its response. `tolerant`: it sends malformed HTTP. `delayed`: on a kept connection,
 * each request takes 40 ms longer.
 */
export interface QuirkCondition {
  readonly kind: 'stray' | 'tolerant' | 'delayed'
  /** When the quirk was found. */
  readonly since: number
  /** For malformed HTTP: the request, the fault of its response, and the bytes around the fault, as `http1/deviation.ts` shows them. */
  readonly malformed: { readonly request: string; readonly fault: string; readonly bytes: string } | null
}

export interface LimitCondition {
  readonly requests: number
  readonly window: number
  readonly per: Per
  /** The limits of single names (`passwords[].limit`). */
  readonly names: readonly { readonly name: string; readonly requests: number; readonly window: number }[]
  /** The used-up windows, at most 100, those with the most refused requests first. */
  readonly usedUp: readonly UsedUpRow[]
  /** The number of used-up windows, up to 1,000; `usedUp` may hold fewer. */
  readonly usedUpCount: number
}

interface UsedUpRow {
  /** The address of a client, `grant ID`, `*` for all clients together, or `overflow` for those beyond `limits.max_keys`. */
  readonly key: string
  readonly until: number
  readonly refused: number
}

export interface GrantRow {
  readonly id: string
  readonly client: string
  /** Only for an issued grant; empty if it has no label. */
  readonly label?: string
  readonly issuedAt: number
  readonly expiresAt: number
  /** The last request or refresh that this sidecar saw; null if none since it started. */
  readonly usedAt: number | null
}

/** An entry of the timeline: a line of the log that is not about one request. */
export interface TimelineEntry {
  /** Ascending from 1 in each run. A repeated line keeps its id. */
  readonly id: number
  readonly time: number
  readonly level: 'info' | 'warn' | 'error'
  readonly text: string
  /** The other fields of the line, as text: `reason: connection refused`. Empty without other fields. */
  readonly details: string
  /** How often the line came in a row; `time` is that of the last one. */
  readonly times: number
}

/**
 * The events of `page/events`. The stream begins with `start`. A `point` follows each second, the others when something has
 * changed. After a reconnection with `Last-Event-ID`, `start` has only the points since then.
 */
export interface PageEvents {
  readonly start: {
    readonly about: About
    /** The sidecar's clock, for pages on machines whose clock differs. */
    readonly now: number
    readonly mayRevoke: boolean
    /** Whether the viewer has signed in, and so can sign out. */
    readonly signedIn: boolean
    /** The last 15 minutes, oldest first. Seconds without a point are missing. */
    readonly points: readonly Point[]
    /** The last 100 entries, oldest first. */
    readonly timeline: readonly TimelineEntry[]
    readonly condition: Condition
  }
  readonly point: Point
  readonly condition: Condition
  /** New entries, or the last entry if it was repeated. */
  readonly timeline: readonly TimelineEntry[]
  /** At most one event every two seconds. The first one has all rows, later ones the changed rows. */
  readonly grants: {
    /** The number of all live grants; the page gets the 1,000 most recently used. Null if the shared store does not answer. */
    readonly total: number | null
    readonly changed: readonly GrantRow[]
    /** The ids of grants that have ended, or are no longer among the 1,000. */
    readonly removed: readonly string[]
  }
}
