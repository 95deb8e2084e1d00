import { sumOf } from './chart-data.js'
import { count, latency, share, words } from './format.js'

/** @import { Condition, Point, ServiceCondition } from '../overview/model.ts' */

/**
 * Something that an operator should know.
 *
 * @typedef {object} Alarm
 * @property {string} key stays the same while the alarm lasts
 * @property {'critical' | 'warning' | 'note'} level
 * @property {string} what
 * @property {number | null} since ms since the Unix epoch; null if the sidecar does not tell
 * @property {string} remedy
 * @property {string} section of docs/alerts.md
 */

/**
 * What alarms are derived from.
 *
 * @typedef {object} View
 * @property {Condition} condition
 * @property {readonly Point[]} points oldest first
 * @property {readonly Point[]} last those of the last minute
 * @property {number} now ms since the Unix epoch
 */

/** Yields no alarm or one in most cases, and depends on the view only. @typedef {(view: View) => Iterable<Alarm>} Rule */

/**
 * @param {Alarm['level']} level
 * @param {string} key
 * @param {string} section
 * @param {Pick<Alarm, 'what' | 'remedy'> & { readonly since?: number | null }} text
 * @returns {Alarm}
 */
export const raise = (level, key, section, text) => ({ level, key, section, since: null, ...text })

/** The device is slow from this latency on (ms), as for PosternDeviceSlow. Points have no p95, so the page takes their p99. */
const SLOW = 5_000
/** Requests that wait for this long without a pause make an alarm (ms). PosternQueueing waits for five minutes. */
const WAITING = 30_000
/** As for PosternServerErrors. */
const ERRORS = { share: 0.05, more: 10 }
/** So many requests in a minute, and so large a share of them refused, are no longer the affair of single clients. */
const REFUSED = { share: 0.5, requests: 10 }

/** The part of `listen.memory` from which clients lose what they hold. PosternMemoryShort has the same. */
const SHED_FROM = 0.8

/** The refusals that are responses of 500 and above: the errors count them. */
const FAILURES = ['upstream', 'overloaded', 'store_unavailable', 'server_error']

/** Many of the last minute's requests ended in a server error. @type {Rule} */
export function* serverErrors({ last }) {
  const requests = sumOf(last, (point) => point.requests)
  // Overload has an alarm of its own.
  const errors = sumOf(last, ({ serverErrors, refusals }) => serverErrors - (refusals.overloaded ?? 0))
  if (errors <= ERRORS.more || errors <= ERRORS.share * requests) return
  const device = sumOf(last, ({ refusals }) => refusals.upstream ?? 0)
  const cause = 2 * device > errors ? ', most because the device failed' : ''
  yield raise('warning', 'errors', 'PosternServerErrors', {
    what: `${share(errors, requests)} of the requests in the last minute ended in a server error (5xx)${cause}`,
    remedy:
      '“Last refused requests” below explains those that Postern or its connection to the device failed. The others are the device’s own: its log says why.',
  })
}

/** @type {Readonly<Record<string, string>>} */
const REFUSAL_REMEDIES = {
  rate_limited:
    '“At the limit” below has the clients. Correct the one that asks so often. Raise limits.api.requests only if this use is normal. If all have one address, it is a proxy: name it in listen.trusted_proxies.',
  unauthorized:
    'Clients send no token, or one that has expired or was revoked: “Last refused requests” below explains each. They have to log in again.',
}

/** Most of the last minute's requests were refused, for reasons that lie with the clients or the configuration. @type {Rule} */
export function* manyRefusals({ last }) {
  /** @type {Record<string, number>} */
  const sums = {}
  for (const [reason, times] of last.flatMap(({ refusals }) => Object.entries(refusals))) {
    if (!FAILURES.includes(reason)) sums[reason] = (sums[reason] ?? 0) + times
  }
  const refused = sumOf(Object.values(sums), (times) => times)
  // Bytes that are no valid request are refused, but are no request.
  const requests = Math.max(
    refused,
    sumOf(last, (point) => point.requests),
  )
  const [main] = Object.entries(sums).sort(([, a], [, b]) => b - a)
  if (main === undefined || requests < REFUSED.requests || refused < REFUSED.share * requests) return
  const most = main[1] === refused ? '' : 'most of them '
  yield raise('warning', 'refusing', main[0] === 'rate_limited' ? 'PosternRateLimiting' : 'ManyRefusals', {
    what: `${share(refused, requests)} of the requests in the last minute were refused, ${most}as ${words(main[0])}`,
    remedy:
      REFUSAL_REMEDIES[main[0]] ?? '“Last refused requests” below explains each, and what the client can do.',
  })
}

/** @type {Rule} */
export function* slowness({ last }) {
  const p99 = last.flatMap(({ device }) => (device === null ? [] : [device.p99])).sort((a, b) => a - b)
  const median = p99[Math.floor(p99.length / 2)]
  if (median === undefined || p99.length < 10 || median < SLOW) return
  yield raise('warning', 'slow', 'PosternDeviceSlow', {
    what: `The device is slow: ${latency(median)} at p99 in the last minute`,
    remedy:
      'If it breaks down under load, set upstream.max_in_flight: auto; if a fixed number is below what it can serve at once, raise it. Past upstream.response_timeout requests fail.',
  })
}

/** More requests arrive than the device takes. @type {Rule} */
export function* queueing({ condition: { services }, points, last }) {
  const turnedAway = sumOf(last, ({ refusals }) => refusals.overloaded ?? 0)
  // Requests wait since then without a pause; null if none waits.
  const since = points[points.findLastIndex(({ queued }) => queued === 0) + 1]?.time ?? null
  const waited = since === null ? 0 : (points.at(-1)?.time ?? 0) - since
  const [full] = services.toSorted((a, b) => partTaken(b) - partTaken(a))
  const remedy = queueRemedy(full)
  if (turnedAway > 0) {
    const what = `${count(turnedAway)} ${turnedAway === 1 ? 'request was' : 'requests were'} refused as overloaded in the last minute`
    const causes = 'The queue for the device, the WebSockets or the logins are at their maximum.'
    yield raise('warning', 'overloaded', 'PosternOverloaded', { what, since, remedy: `${causes} ${remedy}` })
  } else if (full !== undefined && partTaken(full) >= 0.5) {
    const of = full.route === null ? '' : ` of ${full.route}`
    const what = `The queue${of} fills: ${count(full.queue.queued)} of ${count(full.queue.size)} places are taken`
    yield raise('warning', 'queue', 'PosternQueueing', { what, since, remedy })
  } else if (waited >= WAITING) {
    yield raise('warning', 'waiting', 'PosternQueueing', {
      what: 'Requests wait for the device',
      since,
      remedy,
    })
  }
}

/** Clients hold so much of `listen.memory` that some of them lose what they hold. @type {Rule} */
export function* memory({ condition: { memory } }) {
  if (memory.stage === null || memory.held < SHED_FROM * memory.limit) return
  yield raise('warning', 'memory', 'PosternMemoryShort', {
    what: `Clients hold ${share(memory.held, memory.limit)} of the memory for them, and those that hold most lose something`,
    remedy:
      'A flood ends by itself when it stops: clients that hold little are served. If all clients are honest, give the machine or the service more memory, or raise listen.memory.',
  })
}

/** The part of the queue that is taken. @param {ServiceCondition} service */
const partTaken = ({ queue: { queued, size } }) => queued / Math.max(1, size)

/** @param {ServiceCondition | undefined} service */
function queueRemedy(service) {
  if (service === undefined) return ''
  const { route, queue } = service
  const key = route === null ? 'upstream.max_in_flight' : `max_in_flight of ${route} in upstream.routes`
  return `More requests arrive than ${key} (${count(queue.maxInFlight)}) lets through. If that number is not learned and the device can serve more at once, raise it; if the device breaks down under load, set auto.`
}
