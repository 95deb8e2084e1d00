import { OBSERVING, TRYING } from '../config/unsafe.ts'
import { TROUBLES } from '../record/troubles.ts'
import type { AlarmLevel, AlarmName } from './model.ts'

/** The condition under which a figure is an alarm. Times in ms. */
interface Bound {
  /** In the unit of the figure; 0 for a state that is true or false. */
  readonly threshold: number
  /** The time over which the figure is taken; 0: the present figure. */
  readonly over: number
  /** The least number of events: one failure among three requests at night is no alarm. */
  readonly events: number
  /** How long the condition must last. */
  readonly for: number
}

interface AlarmKind {
  readonly level: AlarmLevel
  /** The measured metric, or the member of `Condition`. */
  readonly figure: string
  /** The bound for the live page and `postern status`, at which a person already looks. */
  readonly here: Bound
  /** The bound for the alert of Prometheus, which wakes a person up, so it waits for longer; null without an alert. */
  readonly alert: (Bound & { readonly severity?: 'info' }) | null
  /** Meaning and remedy as clauses, like those of `check`. An alarm may replace both by texts that depend on the condition. */
  readonly meaning: string
  readonly remedy?: string
  /** The alarms that explain this one. While one of them is critical, this one is left out. */
  readonly follows?: readonly AlarmName[]
}

export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

const AT_ONCE: Bound = { threshold: 0, over: 0, events: 0, for: 0 }

const DEVICE = ['PosternDeviceDown', 'PosternRouteDown'] as const

const QUEUE_REMEDY =
  'if the device can serve more at once, set a higher number; if it breaks down under load, remove upstream.max_in_flight: the number is then learned, up to 4'

/**
 * Every alarm. The live page, `postern status` and `check` take their texts from here, and `test/grafana/alerts.test.ts` compares
 * deploy/postern.rules.yml with `alert`.
 */
export const KINDS: Readonly<Record<AlarmName, AlarmKind>> = {
  NotReady: {
    level: 'critical',
    figure: 'ready',
    here: AT_ONCE,
    alert: null,
    meaning: '/readyz answers 503, so a load balancer sends no traffic here',
    remedy: 'run postern check, which says what does not work, and how to mend it',
    follows: [...DEVICE, 'PosternSharedStoreDown'],
  },
  PosternServerErrors: {
    level: 'warning',
    figure: 'postern_requests_total, its part with a code of 500 and above',
    here: { ...AT_ONCE, threshold: 0.05, over: MINUTE, events: 10 },
    alert: { threshold: 0.05, over: 5 * MINUTE, events: 10, for: 5 * MINUTE },
    meaning: 'clients get errors, from the device or from Postern',
    remedy:
      "look at the last refused requests (live page, postern explain): Postern or its connection to the device failed these. The others are the device's own: its log says why",
    follows: [...DEVICE, 'PosternSharedStoreDown'],
  },
  PosternDeviceSlow: {
    level: 'warning',
    // Seconds. The points of the history have no p95, so the sidecar takes the median of their p99.
    figure: 'postern_upstream_duration_seconds',
    here: { ...AT_ONCE, threshold: 5, over: MINUTE, events: 10 },
    alert: { ...AT_ONCE, threshold: 5, over: 5 * MINUTE, for: 10 * MINUTE },
    meaning:
      'requests hold their place at the device, and others wait; past upstream.response_timeout they fail',
    remedy: TROUBLES.PosternDeviceSlow.remedy,
    follows: DEVICE,
  },
  PosternOverloaded: {
    level: 'warning',
    figure: 'postern_refusals_total of the reason overloaded',
    here: { ...AT_ONCE, over: MINUTE },
    alert: { ...AT_ONCE, threshold: 10, over: 5 * MINUTE },
    meaning: 'the queue for the device, the WebSockets or the streams are at their maximum',
    remedy: QUEUE_REMEDY,
    follows: DEVICE,
  },
  PosternQueueing: {
    level: 'warning',
    figure: 'postern_upstream_queued',
    here: { ...AT_ONCE, for: 30 * SECOND },
    alert: { ...AT_ONCE, for: 5 * MINUTE },
    meaning: 'more requests arrive than the device gets at once; when the queue is full, they are refused',
    remedy: QUEUE_REMEDY,
    follows: DEVICE,
  },
  PosternDeviceDown: {
    level: 'critical',
    figure: 'postern_upstream_up',
    here: AT_ONCE,
    alert: { ...AT_ONCE, for: 2 * MINUTE },
    meaning: 'clients get an error for every request but those for tokens',
    remedy: TROUBLES.PosternDeviceDown.remedy,
  },
  PosternRouteDown: {
    level: 'warning',
    figure: 'postern_route_up',
    here: AT_ONCE,
    alert: { ...AT_ONCE, for: 2 * MINUTE },
    meaning: 'clients get an error for every request to this path; the rest of the device works',
    remedy: TROUBLES.PosternDeviceDown.remedy,
  },
  PosternSharedStoreDown: {
    level: 'critical',
    figure: 'postern_store_up',
    here: AT_ONCE,
    alert: { ...AT_ONCE, for: MINUTE },
    meaning:
      'known tokens work for tokens.offline_grace; logins and all other tokens get 500, and limits count per sidecar',
    remedy: TROUBLES.PosternSharedStoreDown.remedy,
  },
  PosternRateLimiting: {
    level: 'warning',
    // Here: the part of all requests that were refused for any reason, if most were rate limited. The alert: 429 responses per second.
    figure: 'postern_rate_limited_total',
    here: { ...AT_ONCE, threshold: 0.5, over: MINUTE, events: 10 },
    alert: { ...AT_ONCE, threshold: 1, over: 5 * MINUTE, for: 10 * MINUTE, severity: 'info' },
    meaning: 'a client asks too often, or the limit is too low for normal use',
    remedy: TROUBLES.PosternRateLimiting.remedy,
  },
  ManyRefusals: {
    level: 'warning',
    figure: 'postern_refusals_total',
    here: { ...AT_ONCE, threshold: 0.5, over: MINUTE, events: 10 },
    alert: null,
    meaning: 'the reason lies with the clients or the configuration',
    remedy:
      'look at the last refused requests (live page, postern explain): each says why, and what the client can do',
  },
  ObservingOnly: {
    level: 'warning',
    figure: 'enforce',
    here: AT_ONCE,
    alert: null,
    meaning: OBSERVING.meaning,
    remedy: OBSERVING.remedy,
  },
  AllowOnTrial: {
    level: 'warning',
    figure: 'postern_named_requests_total',
    here: AT_ONCE,
    alert: null,
    meaning: TRYING.meaning,
    remedy: TRYING.remedy,
  },
  PosternMemoryShort: {
    level: 'warning',
    figure: 'postern_memory_bytes / postern_memory_limit_bytes',
    here: { ...AT_ONCE, threshold: 0.8 },
    alert: { ...AT_ONCE, threshold: 0.8, for: MINUTE },
    meaning: 'a flood ends by itself when it stops: clients that hold little are served',
    remedy: 'if all clients are honest, give the machine or the service more memory, or raise listen.memory',
  },
  MalformedHttp: {
    level: 'note',
    figure: 'services.tolerant',
    here: AT_ONCE,
    alert: null,
    meaning: 'Postern reads the device by its tolerant rules, with one connection for each request',
    remedy: 'look for a new firmware; if it sends bytes after its responses, set upstream.reuse: never',
  },
  DeviceCrowded: {
    level: 'note',
    figure: 'services.ceiling',
    here: AT_ONCE,
    alert: null,
    meaning: 'other requests wait',
    remedy: 'do nothing: one more is tried by and by, and postern status says when',
  },
  PosternDeviceBroke: {
    level: 'warning',
    figure: 'postern_upstream_strikes_total',
    here: AT_ONCE,
    alert: { ...AT_ONCE, over: HOUR },
    meaning: 'no more than that number are sent at once now',
    remedy: TROUBLES.PosternDeviceBroke.remedy,
  },
  PosternReloadFailed: {
    level: 'warning',
    // Here: the latest reload was refused. The alert: the number of refused reloads.
    figure: 'postern_config_reloads_total',
    here: AT_ONCE,
    alert: { ...AT_ONCE, over: 15 * MINUTE },
    meaning: 'clients notice nothing, but no change takes effect, and the next start would fail',
    remedy: TROUBLES.PosternReloadFailed.remedy,
  },
  PosternCertificateExpires: {
    level: 'warning',
    // Seconds until expiry: a day after an ACME client should have renewed it. A certificate with a short life alarms in its last third.
    figure: 'postern_certificate_expiry_timestamp_seconds, postern_certificate_not_before_timestamp_seconds',
    here: { ...AT_ONCE, threshold: (29 * DAY) / SECOND },
    alert: { ...AT_ONCE, threshold: (29 * DAY) / SECOND, for: 3 * HOUR },
    meaning: 'clients that check the certificate do not connect while it is not valid',
    remedy: TROUBLES.PosternCertificateExpires.remedy,
  },
  PosternCertificateInvalid: {
    level: 'critical',
    figure: 'postern_certificate_expiry_timestamp_seconds, postern_certificate_not_before_timestamp_seconds',
    here: AT_ONCE,
    alert: AT_ONCE,
    meaning: 'clients that check the certificate do not connect while it is not valid',
    remedy: 'set the clock of this machine',
  },
  PosternStoreErrors: {
    level: 'warning',
    figure: 'postern_store_errors_total',
    here: AT_ONCE,
    alert: { ...AT_ONCE, over: 10 * MINUTE },
    meaning: 'the last good password stays valid',
    remedy:
      'mend the file of password.file: one line, the hash that postern hash-password makes. It holds within seconds',
  },
  NoPassword: {
    level: 'critical',
    figure: 'password.absent',
    here: AT_ONCE,
    alert: null,
    meaning: 'logins with it are refused, and its tokens have ended',
    remedy:
      'unlock the account (usermod -U, chage -E -1) or give it a password; with passwords, the name can be removed instead. It holds within seconds',
  },
  PosternPasswordGuessing: {
    level: 'warning',
    figure: 'postern_password_failures_total',
    here: { ...AT_ONCE, threshold: 20, over: 10 * MINUTE },
    // `events` counts slowed logins: with limits.wrong_passwords: slow, one address gets at most twenty wrong passwords in this time.
    alert: { ...AT_ONCE, threshold: 20, events: 10, over: 10 * MINUTE },
    meaning:
      'an attacker guesses, or a client has an old password; while passwords wait, clients that have logged in before go first',
    remedy: TROUBLES.PosternPasswordGuessing.remedy,
  },
  PosternTokensUnsaved: {
    level: 'warning',
    figure: 'postern_tokens_unsaved',
    here: AT_ONCE,
    alert: { ...AT_ONCE, for: MINUTE },
    meaning: 'clients notice nothing until the sidecar restarts',
    remedy: TROUBLES.PosternTokensUnsaved.remedy,
  },
  PosternTokenFileBroken: {
    level: 'warning',
    // Here: the file was set aside within the last day. The alert: the number of such files, which a start with one raises from 0 to 1.
    figure: 'postern_store_errors_total of the operation set_aside',
    here: { ...AT_ONCE, over: DAY },
    alert: { ...AT_ONCE, over: 10 * MINUTE },
    meaning: 'its tokens are void, and their clients get 401 until they log in again',
    remedy: TROUBLES.PosternTokenFileBroken.remedy,
  },
  TokenFileCopied: {
    level: 'warning',
    figure: 'tokens.copiedAt',
    here: AT_ONCE,
    alert: null,
    meaning: 'tokens that were revoked after the copy was made are valid again',
    remedy: 'run postern revoke --all, and clients log in again; not needed if the folder was only moved',
  },
  PosternTokensEvicted: {
    level: 'warning',
    // Here: the part of tokens.capacity that is taken, before tokens are evicted. The alert: the number of evicted tokens.
    figure: 'postern_tokens_evicted_total',
    here: { ...AT_ONCE, threshold: 0.9 },
    alert: { ...AT_ONCE, over: HOUR },
    meaning: 'beyond it the least recently used logins are dropped',
    remedy: 'raise tokens.capacity, or find the client that logs in so often',
  },
  PosternIssuedTokenEnds: {
    level: 'warning',
    // Seconds until it ends. Only for tokens with a lifetime of more than two weeks: see `tokens/handout.ts`.
    figure: 'postern_issued_token_expiry_timestamp_seconds',
    here: { ...AT_ONCE, threshold: (7 * DAY) / SECOND },
    alert: { ...AT_ONCE, threshold: (7 * DAY) / SECOND },
    meaning: 'then its client gets 401, and cannot refresh it',
    remedy:
      'issue one with the same label (postern issue --label) and give it to the client; revoke it if it is no longer needed',
  },
}
