import { BROKEN_OFF, type Incoming, json, type Reply } from '../exchange.ts'
import type { Fault, Inside, Layer } from '../fault.ts'
import { fixedWindows } from '../windows.ts'
import { perServer, tokenOf, withFields } from './layers.ts'
import { racingWindows, slidingWindows, tokenBuckets } from './odd-windows.ts'

/** Faults of what counts (C13). */
export const COUNT_FAULTS: readonly Fault[] = [
  {
    name: 'refusals-uncounted',
    sentence: 'a 401 does not count',
    breaks: { C13: /Remaining|passed/ },
    exchange: uncounted(({ status }) => status === 401),
  },
  {
    name: 'bad-requests-uncounted',
    sentence: 'a 400 does not count',
    breaks: { C13: /Remaining|passed/ },
    // What is given back when the next window is open raises its number above the limit.
    alsoBreaks: ['C16'],
    run: 'windows',
    exchange: uncounted(({ status }) => status === 400),
  },
  {
    name: 'logins-uncounted',
    sentence: 'a 200 of the token endpoint does not count',
    breaks: { C13: /Remaining/, C14: /passed instead of 30/, C16: /Remaining not below the limit/ },
    run: 'windows',
    exchange: uncounted(({ status }, { path }) => status === 200 && path === '/oauth/token'),
  },
  {
    name: 'head-uncounted',
    sentence: 'HEAD does not count',
    breaks: { C13: /Remaining|passed/ },
    exchange: uncounted(({ status }, { method }) => status !== 429 && method === 'HEAD'),
  },
  {
    name: 'one-window-for-both',
    sentence: 'a request counts in the windows of both endpoint types',
    breaks: { C13: /Remaining/, C14: /passed/ },
    run: 'windows',
    exchange: async (request, next, inside) => {
      const other = inside.endpointOf(request) === 'api' ? 'oauth' : 'api'
      await inside.windows[other].count(inside.keyOf(request))
      return next(request)
    },
  },
  {
    name: 'counts-twice',
    sentence: 'a request counts twice',
    breaks: { C13: /Remaining|passed/, C14: /passed/ },
    run: 'windows',
    exchange: async (request, next, inside) => {
      await inside.windows[inside.endpointOf(request)].count(inside.keyOf(request))
      return next(request)
    },
  },
]

const connections = perServer(() => new WeakMap<object, number>())
const numbers = perServer((): { next: number } => ({ next: 0 }))

/** Faults of the windows themselves (C14). */
export const WINDOW_FAULTS: readonly Fault[] = [
  {
    name: 'one-too-many',
    sentence: 'one request more than the limit passes',
    breaks: { C14: /61|31/ },
    run: 'windows',
    windows: (limit) => fixedWindows(limit, { admits: limit.requests + 1 }),
  },
  {
    name: 'one-too-few',
    sentence: 'one request less than the limit passes',
    breaks: { C14: /59|29/ },
    run: 'windows',
    windows: (limit) => fixedWindows(limit, { admits: limit.requests - 1 }),
  },
  {
    name: 'sliding-window',
    sentence: 'the limit holds for every time of the length of a window',
    breaks: { C14: /passed|Remaining/ },
    run: 'windows',
    windows: slidingWindows,
  },
  {
    name: 'token-bucket',
    sentence: 'the limit is a bucket that refills by quarters',
    breaks: { C14: /200|passed/ },
    run: 'windows',
    windows: tokenBuckets,
  },
  {
    name: 'late-count',
    sentence: 'a request is counted a moment after it was checked',
    breaks: { C14: /passed/, H125: /passed/ },
    run: 'complete',
    windows: (limit) => racingWindows(limit, 2),
  },
  {
    name: 'window-per-version',
    sentence: 'HTTP/2 has a window of its own',
    breaks: { C14: /passed/ },
    run: 'windows',
    server: { tls: true },
    key: ({ version, address }) => `${version} ${address}`,
  },
  {
    name: 'window-per-connection',
    sentence: 'each connection has a window of its own',
    breaks: { C14: /passed/, H125: /passed/ },
    run: 'complete',
    key({ connection }, inside) {
      const known = connections(inside).get(connection) ?? numbers(inside).next++
      connections(inside).set(connection, known)
      return String(known)
    },
  },
  {
    name: 'late-reset',
    sentence: 'a window stays open for half its length after its reset',
    breaks: { C15: /429/ },
    // Until it closes, its reset is in the past.
    alsoBreaks: ['C14', 'C16', 'H125'],
    run: 'complete',
    windows: (limit) => fixedWindows(limit, { lasts: limit.seconds * 1.5 }),
  },
  {
    name: 'early-reset',
    sentence: 'a window closes after a third of its length',
    breaks: { C14: /200|after|before window 1 had closed/ },
    run: 'windows',
    windows: (limit) => fixedWindows(limit, { lasts: limit.seconds / 3 }),
  },
  {
    name: 'refusals-prolong',
    sentence: 'a refused request starts the window again',
    breaks: { C15: /Reset|reset|429/ },
    // Refusals that come a second after the window has opened state another one.
    alsoBreaks: ['C14', 'H125'],
    run: 'complete',
    windows: (limit) =>
      fixedWindows(limit, {
        refused(window) {
          window.closesAt = Date.now() + limit.seconds * 1000
        },
      }),
  },
]

/** Faults by which a client gets a second window (H69). */
export const BYPASS_FAULTS: readonly Fault[] = [
  ...['x-forwarded-for', 'forwarded', 'x-real-ip'].map((name) => ({
    name: `window-per-${name}`,
    sentence: `the window belongs to the address in ${name}`,
    breaks: { H69: /200/ },
    key: ({ fields, address }: Incoming) => fields.get(name)?.[0] ?? address,
  })),
  {
    name: 'window-per-query',
    sentence: 'each query has a window of its own',
    breaks: { H69: /200/ },
    key: ({ address, query }) => address + query,
  },
  {
    name: 'window-per-path',
    sentence: 'each path has a window of its own',
    breaks: { H69: /200/ },
    key: ({ address, path }) => address + path,
  },
  {
    name: 'window-per-token',
    sentence: 'each access token has a window of its own',
    breaks: { H69: /200/ },
    key: (request, { tokens }) => {
      const token = tokenOf(request) ?? ''
      return request.address + (tokens.admits(token) ? token : '')
    },
  },
]

const refusals = perServer(() => new Map<string, number>())

/** Faults that show only when a client sends many requests past the limit (H125). */
export const FLOOD_FAULTS: readonly Fault[] = [
  {
    name: 'flood-breaks-off',
    sentence: 'under a flood some requests get no response',
    breaks: { H125: /no response|closed|reset|error/ },
    run: 'complete',
    exchange: inFlood((reply, nth) => (nth % 5 === 0 ? BROKEN_OFF : reply)),
  },
  {
    name: 'flood-500',
    sentence: 'under a flood some requests are 500',
    breaks: { H125: /500/ },
    run: 'complete',
    exchange: inFlood((reply, nth) => (nth % 5 === 0 ? { ...reply, status: 500 } : reply)),
  },
  {
    name: 'flood-passes',
    sentence: 'under a flood some requests pass',
    breaks: { H125: /passed|200/ },
    run: 'complete',
    exchange: inFlood((reply, nth) => (nth % 5 === 0 ? json(200, {}, limitsOf(reply)) : reply)),
  },
]

/** More refusals in one window than anything but a flood causes. */
const FLOOD = 50

/** Changes the refusals of one window behind those. */
function inFlood(change: (reply: Reply, nth: number) => Reply): Layer {
  return async (request, next, inside) => {
    const reply = await next(request)
    if (reply.status !== 429) return reply
    const window = `${inside.endpointOf(request)} ${reply.fields['X-RateLimit-Reset']}`
    const nth = (refusals(inside).get(window) ?? 0) + 1
    refusals(inside).set(window, nth)
    return nth > FLOOD ? change(reply, nth) : reply
  }
}

function limitsOf({ fields }: Reply): Reply['fields'] {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => name.startsWith('X-RateLimit')))
}

/** Takes back the requests whose replies match. */
function uncounted(matches: (reply: Reply, request: Incoming) => boolean): Layer {
  return async (request, next, inside: Inside) => {
    const reply = await next(request)
    if (!matches(reply, request)) return reply
    inside.windows[inside.endpointOf(request)].giveBack(inside.keyOf(request))
    const remaining = Number(reply.fields['X-RateLimit-Remaining']) + 1
    return withFields(reply, { 'X-RateLimit-Remaining': String(remaining) })
  }
}
