import { count, type Rule, raise, share, sumOf, words } from './alarm.ts'
import { KINDS, SECOND } from './alarm-kinds.ts'
import type { ServiceCondition } from './model.ts'

// The alarms about the load of the last minute, and about the memory that clients hold.

/** The refusals with a status of 500 and above: they count as server errors. */
const FAILURES = [
  'upstream',
  'overloaded',
  'logins_overloaded',
  'password_unchecked',
  'store_unavailable',
  'server_error',
]

/** A queue that is filled to this part is an alarm at once. */
const FILLS = 0.5

export const serverErrors: Rule = function* ({ last }) {
  const { threshold, events, over } = KINDS.PosternServerErrors.here
  const points = last(over)
  const requests = sumOf(points, (point) => point.requests)
  // Overload has an alarm of its own.
  const errors = sumOf(
    points,
    ({ serverErrors, refusals: { overloaded = 0, logins_overloaded = 0 } }) =>
      serverErrors - overloaded - logins_overloaded,
  )
  if (errors <= events || errors <= threshold * requests) return
  const device = sumOf(points, ({ refusals }) => refusals.upstream ?? 0)
  const cause = 2 * device > errors ? ', most because the device failed' : ''
  yield raise('PosternServerErrors', {
    what: `${share(errors, requests)} of the requests in the last minute ended in a server error (5xx)${cause}`,
  })
}

/** Alarms if many requests were refused, for reasons that lie with the clients or the configuration. */
export const manyRefusals: Rule = function* ({ facts, last }) {
  if (!facts.enforce) return
  const { threshold, events, over } = KINDS.ManyRefusals.here
  const points = last(over)
  const sums = new Map<string, number>()
  for (const [reason, times] of points.flatMap(({ refusals }) => Object.entries(refusals))) {
    if (!FAILURES.includes(reason)) sums.set(reason, (sums.get(reason) ?? 0) + times)
  }
  const refused = sumOf([...sums.values()], (times) => times)
  // Bytes that are no valid request count as a refusal, but not as a request.
  const requests = Math.max(
    refused,
    sumOf(points, (point) => point.requests),
  )
  const [main] = [...sums].sort(([, a], [, b]) => b - a)
  if (main === undefined || requests < events || refused < threshold * requests) return
  const [reason, times] = main
  const most = times === refused ? '' : 'most of them '
  const what = `${share(refused, requests)} of the requests in the last minute were refused, ${most}as ${words(reason)}`
  if (reason === 'rate_limited') yield raise('PosternRateLimiting', { what })
  else yield raise('ManyRefusals', { what, ...REFUSALS[reason] })
}

const REFUSALS: Readonly<Record<string, { readonly meaning: string; readonly remedy: string }>> = {
  unauthorized: {
    meaning: 'clients send no token, or one that has expired or was revoked',
    remedy:
      'let them log in again; the last refused requests (live page, postern explain) say which it is for each',
  },
}

export const slowness: Rule = function* ({ last }) {
  const { threshold, events, over } = KINDS.PosternDeviceSlow.here
  const p99 = last(over).flatMap(({ device }) => (device === null ? [] : [device.p99]))
  p99.sort((a, b) => a - b)
  const median = p99[Math.floor(p99.length / 2)]
  if (median === undefined || p99.length < events || median < threshold * SECOND) return
  const seconds = median / SECOND
  yield raise('PosternDeviceSlow', {
    what: `The device is slow: ${seconds.toFixed(seconds < 10 ? 2 : 1)} s at p99 in the last minute`,
  })
}

/** Alarms if more requests arrive than the device takes. */
export const queueing: Rule = function* ({ facts: { services }, points, last }) {
  const [full] = services.toSorted((a, b) => partTaken(b) - partTaken(a))
  if (full === undefined) return
  const { route, queue } = full
  // The time since which requests wait without a pause; null if none waits.
  const since = points[points.findLastIndex(({ queued }) => queued === 0) + 1]?.time ?? null
  const waited = since === null ? 0 : (points.at(-1)?.time ?? 0) - since
  const key = route === null ? 'upstream.max_in_flight' : `max_in_flight of ${route} in upstream.routes`
  const meaning = `more requests arrive than ${key} (${count(queue.maxInFlight)}) lets through`
  const overloaded = KINDS.PosternOverloaded
  const turnedAway = sumOf(last(overloaded.here.over), ({ refusals }) => refusals.overloaded ?? 0)
  if (turnedAway > overloaded.here.threshold) {
    const were = turnedAway === 1 ? 'request was' : 'requests were'
    yield raise('PosternOverloaded', {
      what: `${count(turnedAway)} ${were} refused as overloaded in the last minute`,
      since,
      meaning: `${overloaded.meaning}. Of the queue: ${meaning}`,
    })
  } else if (partTaken(full) >= FILLS) {
    const of = route === null ? '' : ` of ${route}`
    const what = `The queue${of} fills: ${count(queue.queued)} of ${count(queue.size)} places are taken`
    yield raise('PosternQueueing', { what, since, meaning })
  } else if (waited >= KINDS.PosternQueueing.here.for) {
    yield raise('PosternQueueing', { what: 'Requests wait for the device', since, meaning })
  }
}

/** Alarms if clients hold so much of `listen.memory` that those with the most lose connections, streams or requests. */
export const memory: Rule = function* ({ facts: { memory } }) {
  const { held, limit, stage } = memory
  if (stage === null || held < KINDS.PosternMemoryShort.here.threshold * limit) return
  yield raise('PosternMemoryShort', {
    what: `Clients hold ${share(held, limit)} of the memory for them, and those that hold most lose something`,
  })
}

/** The part of the queue that is taken. */
function partTaken({ queue: { queued, size } }: ServiceCondition): number {
  return queued / Math.max(1, size)
}
