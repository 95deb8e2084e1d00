import type { Endpoint, Per, WindowType } from '../http/admission.ts'
import type { StoreCondition } from '../tokens/state.ts'

/**
 * What the live page receives, as JSON. Every time is in ms since the Unix epoch, every duration in ms, unless it says otherwise.
 * Nothing in it is a secret: no token, no password, no query of a request.
 */

/**
 * `GET page/requests`: `RequestRow`s, at most 100, the latest first, with room for each reason. `GET page/requests?id=ID`: the
 * `Explanation` of one request; 404 if it is no longer remembered.
 */
export type { Explanation, RequestRow } from '../record/explanation.ts'

/**
 * `GET page/grants?find=TEXT`: the live grants with this text in the client's address, the id or the label, in any letter case. 400 unless the text has 1
 * to 100 characters; 503 if too many searches wait, or the shared store does not answer.
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
  /** Requests that ended with a status of 500 and above, the device's or Postern's own. */
  readonly serverErrors: number
  /** From the request head to the end of the response; null if no request ended. */
  readonly client: Latency | null
  /** From sending a request to the device to the head of its response; null if it sent none. */
  readonly device: Latency | null
  /** At the end of the second. */
  readonly inFlight: number
  readonly queued: number
  readonly connections: number
  readonly tunnels: number
}

export interface Latency {
  readonly p50: number
  readonly p99: number
}

/** What does not change while the sidecar runs. */
export interface About {
  /** Differs between two runs of the sidecar, so the page notices a restart. */
  readonly run: string
  readonly version: string
  readonly node: string
  readonly machine: string
  readonly startedAt: number
}

/** The name of an alarm: its section of docs/alerts.md, and the alert of deploy/postern.rules.yml that means the same, if there is one. */
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
  | 'TokenFileCopied'
  | 'PosternTokensEvicted'
  | 'PosternIssuedTokenEnds'
  | 'PosternPasswordGuessing'

/** `critical`: clients cannot use the device. `warning`: a person should look. `note`: it asks for no action. */
export type AlarmLevel = 'critical' | 'warning' | 'note'

/** Something that an operator should know. Its texts are sentences, but for `what`. */
export interface Alarm {
  readonly name: AlarmName
  /** Stays the same while the alarm lasts. */
  readonly key: string
  readonly level: AlarmLevel
  readonly what: string
  /** Null if the sidecar does not know. */
  readonly since: number | null
  readonly meaning: string
  readonly remedy: string
}

/** The present condition of all parts. */
export interface Condition {
  /** The most urgent first, one for each cause. */
  readonly alarms: readonly Alarm[]
  readonly ready: boolean
  readonly reasons: readonly string[]
  /** False: the gate only observes. */
  readonly enforce: boolean
  /** The names whose `allow` is on trial, and how many requests since the start it would have refused, or stripped of a field. */
  readonly trials: readonly { readonly name: string; readonly wouldRefuse: number }[]
  /** Sums since the start. Each counts what the member of the same name in `Point` counts in a second; `refused` sums `refusals`. */
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
  /** What clients make the process hold (bytes). */
  readonly memory: {
    readonly held: number
    readonly limit: number
    /** What is shed: the `stage` label of `postern_shed_total`; null if nothing is. */
    readonly stage: string | null
    /** What was refused or given up for it since the start. */
    readonly shed: number
  }
  readonly limits: Readonly<Record<Endpoint, LimitCondition> & Partial<Record<WindowType, LimitCondition>>>
  readonly tokens: {
    /** Those of logins. */
    readonly access: number
    readonly refresh: number
    readonly capacity: number
    /** Tokens that a restart would lose; null without a token file. */
    readonly unsaved: number | null
    /** When the token file was found to be a copy; null if it is none. */
    readonly copiedAt: number | null
    /** The issued tokens that a person has to replace before they end, the first to end first. */
    readonly unreplaced: readonly Pick<GrantRow, 'id' | 'label' | 'expiresAt'>[]
  }
  /** Null for cleartext. */
  readonly certificate: { readonly from: number; readonly until: number; readonly selfSigned: boolean } | null
  readonly password: {
    readonly source: 'file' | 'device'
    readonly changedAt: number | null
    /** Why the source cannot be used; null if it can. */
    readonly problem: string | null
    /** Who has no password, because the account is locked, has expired or is gone; null if all have one. */
    readonly absent: string | null
  }
  /** The wrong passwords of the last five to ten minutes. */
  readonly wrongPasswords: {
    readonly wrong: number
    /** The number of addresses that they came from. An IPv6 /48 is one. */
    readonly addresses: number
    /** At most ten: the addresses with most wrong passwords. */
    readonly from: readonly string[]
  }
  /** Null without a shared store. */
  readonly store: StoreCondition | null
  /** The latest reload, if it was refused; null if it was applied, or there was none. */
  readonly refusedReload: RefusedReload | null
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
  /** By the last request or health check; null before the first. */
  readonly up: boolean | null
  /** When `up` last changed; null before the first request. */
  readonly since: number | null
  /** Whether `upstream.health` checks it. */
  readonly checked: boolean
  /** Open: requests are refused at once because the device could not be reached. */
  readonly breaker: 'closed' | 'open'
  /**
   * The last failure of a request or health check, by its name in `postern_upstream_errors_total`, or `status 503` for a health check
   * with that response; null if there was none.
   */
  readonly failure: string | null
  readonly failedAt: number | null
  /** Its responses are parsed by the tolerant rules. */
  readonly tolerant: boolean
  /** What its responses have shown since the start. */
  readonly quirks: readonly QuirkCondition[]
  /** With `upstream.buffer_uploads`, uploads wait in a queue of their own, of the same size: this is the longer of both. */
  readonly queue: { readonly queued: number; readonly size: number; readonly maxInFlight: number }
  /**
   * What the device does with more than `limit` requests at once, in a fleet over all sidecars: it has no room (`guess`), it breaks (`broke`),
   * one more is tried now (`tried`), it broke again (`barred`); null: nothing is known. After a restart fewer are sent at first: see `queue`.
   */
  readonly ceiling: CeilingCondition | null
}

export interface CeilingCondition {
  readonly kind: 'guess' | 'broke' | 'tried' | 'barred'
  readonly limit: number
}

/**
 * A quirk of the device. `stray`: it sends bytes after its response. `tolerant`: it sends malformed HTTP. `delayed`: a kept connection costs
 * 40 ms a request.
 */
export interface QuirkCondition {
  readonly kind: 'stray' | 'tolerant' | 'delayed'
  /** When it was found. */
  readonly since: number
  /** Of malformed HTTP: the request, the fault of its response, and the bytes around it, as `http1/deviation.ts` shows them. */
  readonly malformed: { readonly request: string; readonly fault: string; readonly bytes: string } | null
}

export interface LimitCondition {
  readonly requests: number
  readonly window: number
  readonly per: Per
  /** The limits of single names (`passwords[].limit`). */
  readonly names: readonly { readonly name: string; readonly requests: number; readonly window: number }[]
  /** The most refused first, at most 100. */
  readonly usedUp: readonly UsedUpRow[]
  /** How many there are, up to 1,000; `usedUp` may hold fewer. */
  readonly usedUpCount: number
}

export interface UsedUpRow {
  /** A client's address, `grant ID`, `*` for all clients together, or `overflow` for all beyond `limits.max_keys`. */
  readonly key: string
  readonly until: number
  readonly refused: number
}

export interface GrantRow {
  readonly id: string
  readonly client: string
  /** Only of a token that an operator issued; empty if it has none. */
  readonly label?: string
  readonly issuedAt: number
  readonly expiresAt: number
  /** The last request or refresh that this sidecar saw; null if none since it started. */
  readonly usedAt: number | null
}

/** An entry of the timeline: a line of the log that is not about one request. */
export interface TimelineEntry {
  /** Ascending from 1 in each run. A line that comes again keeps its id. */
  readonly id: number
  readonly time: number
  readonly level: 'info' | 'warn' | 'error'
  readonly text: string
  /** The other fields of the line, as text: `reason: connection refused`. Empty if there are none. */
  readonly details: string
  /** How often the same line came in a row; `time` is that of the last. */
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
    /** Whether the viewer signed in, and so can sign out. */
    readonly signedIn: boolean
    /** The last 15 minutes, oldest first. Seconds without a point are missing. */
    readonly points: readonly Point[]
    /** The last 100 entries, oldest first. */
    readonly timeline: readonly TimelineEntry[]
    readonly condition: Condition
  }
  readonly point: Point
  readonly condition: Condition
  /** New entries, or a changed last one. */
  readonly timeline: readonly TimelineEntry[]
  /** At most every two seconds. The first has all rows, the next those that changed. */
  readonly grants: {
    /** All live grants; the page gets the 1,000 most recently used. Null if the shared store does not say. */
    readonly total: number | null
    readonly changed: readonly GrantRow[]
    /** Ids that are gone, or no longer among the 1,000. */
    readonly removed: readonly string[]
  }
}
