import { count, latency } from './format.js'

/** @typedef {import('../overview/model.ts').Condition} Condition */
/** @typedef {import('../overview/model.ts').ServiceCondition} ServiceCondition */
/** @typedef {import('../overview/model.ts').Point} Point */

/**
 * Something that an operator should know.
 *
 * @typedef {object} Alarm
 * @property {string} key stays the same while the alarm lasts
 * @property {'critical' | 'warning' | 'note'} level
 * @property {string} what
 * @property {number | null} since ms since the Unix epoch; null if the sidecar does not tell
 * @property {string} remedy
 */

const MINUTE = 60_000
/** The device is slow from this latency on (ms), as for PosternDeviceSlow. Points have no p95, so the page takes their p99. */
const SLOW = 5_000
/** Requests that wait for this long without a pause make an alarm (ms). PosternQueueing waits for five minutes. */
const WAITING = 30_000

/**
 * The alarms about more load than the device takes: it is slow, requests wait, or are refused. Depends on its arguments only.
 *
 * @param {Condition} condition
 * @param {readonly Point[]} points oldest first
 * @param {number} now ms since the Unix epoch
 * @returns {Alarm[]}
 */
export function loadAlarms(condition, points, now) {
  const lastMinute = points.filter(({ time }) => time > now - MINUTE)
  return [...slowness(lastMinute), ...queue(condition, points, lastMinute)]
}

/** @param {readonly Point[]} lastMinute @returns {Alarm[]} */
function slowness(lastMinute) {
  const p99 = lastMinute.flatMap(({ device }) => (device === null ? [] : [device.p99])).sort((a, b) => a - b)
  const median = p99[Math.floor(p99.length / 2)]
  if (median === undefined || p99.length < 10 || median < SLOW) return []
  return [
    {
      key: 'slow',
      level: 'warning',
      what: `The device is slow: ${latency(median)} at p99 in the last minute`,
      since: null,
      remedy:
        'If it breaks down under load, lower upstream.max_in_flight; if it can serve more at once, raise it. Past upstream.response_timeout requests fail.',
    },
  ]
}

/** When requests began to wait, if they have waited without a pause since. @param {readonly Point[]} points */
function waitingSince(points) {
  const idle = points.findLastIndex(({ queued }) => queued === 0)
  return points[idle + 1]?.time ?? null
}

/**
 * @param {Condition} condition
 * @param {readonly Point[]} points
 * @param {readonly Point[]} lastMinute
 * @returns {Alarm[]}
 */
function queue({ services }, points, lastMinute) {
  const turnedAway = lastMinute.reduce((sum, { refusals }) => sum + (refusals.overloaded ?? 0), 0)
  const since = waitingSince(points)
  const waited = since === null ? 0 : (points.at(-1)?.time ?? 0) - since
  const full = fullest(services)
  const remedy = queueRemedy(full)
  if (turnedAway > 0) {
    const what = `${count(turnedAway)} ${turnedAway === 1 ? 'request was' : 'requests were'} refused as overloaded in the last minute`
    const causes = 'The queue for the device, the WebSockets or the logins are at their maximum.'
    return [{ key: 'overloaded', level: 'warning', what, since, remedy: `${causes} ${remedy}` }]
  }
  if (full !== undefined && full.queue.queued > 0 && full.queue.queued >= full.queue.size / 2) {
    const of = full.route === null ? '' : ` of ${full.route}`
    const what = `The queue${of} fills: ${count(full.queue.queued)} of ${count(full.queue.size)} places are taken`
    return [{ key: 'queue', level: 'warning', what, since, remedy }]
  }
  if (waited < WAITING) return []
  return [{ key: 'waiting', level: 'warning', what: 'Requests wait for the device', since, remedy }]
}

/** The service with the largest part of its queue taken. @param {readonly ServiceCondition[]} services */
function fullest(services) {
  /** @param {ServiceCondition} service */
  const part = ({ queue: { queued, size } }) => queued / Math.max(1, size)
  return services.toSorted((a, b) => part(b) - part(a))[0]
}

/** @param {ServiceCondition | undefined} service */
function queueRemedy(service) {
  if (service === undefined) return ''
  const { route, queue } = service
  const key = route === null ? 'upstream.max_in_flight' : `max_in_flight of ${route} in upstream.routes`
  return `More requests arrive than ${key} (${count(queue.maxInFlight)}) lets through. If the device can serve more at once, raise it; if it breaks down under load, lower it.`
}
