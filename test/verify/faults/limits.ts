import { BROKEN_OFF, type Incoming, json, type Reply } from '../exchange.ts'
import { racingWindows, slidingWindows, tokenBuckets } from '../odd-windows.ts'
import { fixedWindows } from '../windows.ts'
import type { Breaks, Fault, Layer } from './fault.ts'
import { changing, remembered, tokenOf, withFields, without } from './layers.ts'

const NAMES = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

const bare = (reply: Reply): Reply => without(reply, ...NAMES)

/** The reply with another number in a field. */
function renumbered(name: string, change: (number: number) => number): (reply: Reply) => Reply {
  return (reply) => withFields(reply, { [name]: String(change(Number(reply.fields[name]))) })
}

const reset = (change: (seconds: number) => number) => renumbered('X-RateLimit-Reset', change)
const remaining = (change: (left: number) => number) => renumbered('X-RateLimit-Remaining', change)

type Row = readonly [
  does: string,
  breaks: Breaks,
  matches: (request: Incoming, reply: Reply) => boolean,
  change: (reply: Reply) => Reply,
  run?: 'windows' | 'complete',
]

const all = (): boolean => true
const refused = (_request: Incoming, { status }: Reply): boolean => status === 429
const passed = (_request: Incoming, { status }: Reply): boolean => status !== 429
const having =
  (wanted: number) =>
  (_request: Incoming, { status }: Reply): boolean =>
    status === wanted

/** What becomes of the replies that match: of the refusal past the limit (C15), and of the three rate-limit fields (C16). */
const REPLIES: readonly Row[] = [
  [
    'sends 429 without Retry-After',
    { C15: /Retry-After/ },
    refused,
    (reply) => without(reply, 'Retry-After'),
  ],
  [
    'sends Retry-After: 0',
    { C15: /Retry-After/ },
    refused,
    (reply) => withFields(reply, { 'Retry-After': '0' }),
  ],
  [
    'sends a Retry-After that ends before the window',
    { C15: /Retry-After/ },
    refused,
    renumbered('Retry-After', (seconds) => Math.ceil(seconds / 2)),
    'complete',
  ],
  [
    'sends a Retry-After that is longer than a window',
    { C15: /Retry-After/ },
    refused,
    renumbered('Retry-After', () => 3600),
    'complete',
  ],
  ...[503, 403].map((status): Row => {
    const came = new RegExp(String(status))
    const breaks = { C15: came, C19: came, H125: came }
    return [
      `answers ${status} past the limit`,
      breaks,
      refused,
      (reply) => ({ ...reply, status }),
      'complete',
    ]
  }),
  [
    'answers 401 to a request without a token past the limit',
    { C15: /401/ },
    ({ path, fields }, { status }) =>
      status === 429 && path !== '/oauth/token' && !fields.has('authorization'),
    (reply) => {
      const challenge = { 'WWW-Authenticate': 'Bearer realm="device"' }
      const { fields } = without(reply, 'Retry-After', 'Content-Type')
      return json(401, { error: 'missing_token' }, { ...fields, ...challenge })
    },
  ],
  ...NAMES.map((name): Row => {
    return [`sends no ${name}`, { C16: new RegExp(name) }, all, (reply) => without(reply, name)]
  }),
  ...[400, 401, 429].map((status): Row => {
    return [
      `sends no rate-limit fields with a ${status}`,
      { C16: new RegExp(String(status)) },
      having(status),
      bare,
    ]
  }),
  [
    'sends no rate-limit fields with tokens',
    { C16: /200/ },
    ({ path }, { status }) => path === '/oauth/token' && status === 200,
    bare,
  ],
  ['states the reset in milliseconds', { C16: /Reset/ }, all, reset((seconds) => seconds * 1000)],
  [
    'states the seconds that are left as the reset',
    { C16: /Reset/ },
    all,
    (reply) => reset((seconds) => seconds - Date.parse(String(reply.fields.Date)) / 1000)(reply),
  ],
  ['states the reset two minutes too late', { C16: /Reset/ }, all, reset((seconds) => seconds + 120)],
  [
    'does not count the request itself in X-RateLimit-Remaining',
    { C16: /Remaining/ },
    passed,
    remaining((left) => left + 1),
    'windows',
  ],
  ['states that -1 remain past the limit', { C16: /Remaining/ }, refused, remaining(() => -1)],
  ['states that 10 remain at any time before the limit', { C16: /Remaining/ }, passed, remaining(() => 10)],
  [
    'states a limit of 100',
    { C16: /Limit/ },
    all,
    (reply) => withFields(reply, { 'X-RateLimit-Limit': '100' }),
  ],
  [
    'sends each rate-limit field twice',
    { C16: /repeated/ },
    all,
    (reply) => {
      const twice = NAMES.map((name) => [name, Array(2).fill(String(reply.fields[name]))])
      return withFields(reply, Object.fromEntries(twice))
    },
  ],
]

/** Takes back the requests whose replies match. */
function uncounted(matches: (reply: Reply, request: Incoming) => boolean): Layer {
  return async (request, next, inside) => {
    const reply = await next(request)
    if (!matches(reply, request)) return reply
    inside.windows[inside.endpointOf(request)].giveBack(inside.keyOf(request))
    return remaining((left) => left + 1)(reply)
  }
}

/** Counts a request once more, in the window of an endpoint type. */
function countedAgain(which: 'its own' | 'the other'): Layer {
  return async (request, next, inside) => {
    const isApi = inside.endpointOf(request) === 'api'
    await inside.windows[isApi === (which === 'its own') ? 'api' : 'oauth'].count(inside.keyOf(request))
    return next(request)
  }
}

/** Faults of what counts (C13), and of the windows themselves (C14). */
const WINDOW_FAULTS: readonly Fault[] = [
  {
    does: 'does not count a 401',
    breaks: { C13: /Remaining|passed/ },
    exchange: uncounted(({ status }) => status === 401),
  },
  {
    does: 'does not count a 400',
    breaks: { C13: /Remaining|passed/ },
    // What is given back when the next window is open raises its number above the limit.
    alsoBreaks: ['C16'],
    run: 'windows',
    exchange: uncounted(({ status }) => status === 400),
  },
  {
    does: 'does not count a 200 of the token endpoint',
    breaks: { C13: /Remaining/, C14: /passed instead of 30/, C16: /Remaining not below the limit/ },
    run: 'windows',
    exchange: uncounted(({ status }, { path }) => status === 200 && path === '/oauth/token'),
  },
  {
    does: 'does not count HEAD',
    breaks: { C13: /Remaining|passed/ },
    exchange: uncounted(({ status }, { method }) => status !== 429 && method === 'HEAD'),
  },
  {
    does: 'counts a request in the windows of both endpoint types',
    breaks: { C13: /Remaining/, C14: /passed/ },
    run: 'windows',
    exchange: countedAgain('the other'),
  },
  {
    does: 'counts a request twice',
    breaks: { C13: /Remaining|passed/, C14: /passed/ },
    run: 'windows',
    exchange: countedAgain('its own'),
  },
  {
    does: 'lets one request more than the limit pass',
    breaks: { C14: /61|31/ },
    run: 'windows',
    windows: (limit, now) => fixedWindows(limit, now, { admits: limit.requests + 1 }),
  },
  {
    does: 'lets one request less than the limit pass',
    breaks: { C14: /59|29/ },
    run: 'windows',
    windows: (limit, now) => fixedWindows(limit, now, { admits: limit.requests - 1 }),
  },
  {
    does: 'has sliding windows',
    breaks: { C14: /passed|Remaining/ },
    run: 'windows',
    windows: slidingWindows,
  },
  {
    does: 'has buckets that refill by quarters',
    breaks: { C14: /200|passed/ },
    run: 'windows',
    windows: tokenBuckets,
  },
  {
    does: 'counts a request a moment after it was checked',
    breaks: { C14: /passed/, H125: /passed/ },
    run: 'complete',
    windows: racingWindows,
  },
  {
    does: 'has a window of its own for HTTP/2',
    breaks: { C14: /passed/ },
    run: 'windows',
    server: { tls: true },
    key: ({ version, address }) => `${version} ${address}`,
  },
  {
    does: 'has a window for each connection',
    breaks: { C14: /passed/, H125: /passed/ },
    run: 'complete',
    key: ({ connection }, { memory }) => String(memory.getOrInsert(connection, memory.size)),
  },
  {
    does: 'leaves a window open for half its length after its reset',
    breaks: { C15: /429/ },
    // Until it closes, its reset is in the past.
    alsoBreaks: ['C14', 'C16', 'H125'],
    run: 'complete',
    windows: (limit, now) => fixedWindows(limit, now, { lasts: limit.seconds * 1.5 }),
  },
  {
    does: 'closes a window after a third of its length',
    breaks: { C14: /200|after|before window 1 had closed/ },
    run: 'windows',
    windows: (limit, now) => fixedWindows(limit, now, { lasts: limit.seconds / 3 }),
  },
  {
    does: 'starts the window again with a refused request',
    breaks: { C15: /Reset|reset|429/ },
    // Refusals that come a second after the window has opened state another one.
    alsoBreaks: ['C14', 'H125'],
    run: 'complete',
    windows: (limit, now) =>
      fixedWindows(limit, now, {
        refused(window) {
          window.closesAt = now() + limit.seconds * 1000
        },
      }),
  },
]

/** By what a client gets a second window (H69). */
const KEYS: Readonly<Record<string, NonNullable<Fault['key']>>> = {
  'the address in X-Forwarded-For': ({ fields, address }) => fields.get('x-forwarded-for')?.[0] ?? address,
  'the address in a second X-Forwarded-For': ({ fields, address }) =>
    fields.get('x-forwarded-for')?.[1] ?? address,
  'the address in Forwarded': ({ fields, address }) => fields.get('forwarded')?.[0] ?? address,
  'the address in X-Real-IP': ({ fields, address }) => fields.get('x-real-ip')?.[0] ?? address,
  'each query': ({ address, query }) => address + query,
  'each path': ({ address, path }) => address + path,
  'each access token': (request, { tokens }) => {
    const token = tokenOf(request) ?? ''
    return request.address + (tokens.admits(token) ? token : '')
  },
}

/** More refusals in one window than anything but a flood causes. */
const FLOOD = 50

/** Changes every fifth refusal of one window behind those. */
function inFlood(change: (reply: Reply) => Reply): Layer {
  return async (request, next, inside) => {
    const reply = await next(request)
    if (reply.status !== 429) return reply
    const window = `${inside.endpointOf(request)} ${reply.fields['X-RateLimit-Reset']}`
    const nth = Number(remembered(inside, window) ?? 0) + 1
    inside.memory.set(window, String(nth))
    return nth > FLOOD && nth % 5 === 0 ? change(reply) : reply
  }
}

/** What becomes of every fifth refusal under a flood (H125). */
const IN_FLOOD: Readonly<Record<string, readonly [came: RegExp, change: (reply: Reply) => Reply]>> = {
  'gives some requests no response': [/no response|closed|reset|error/, () => BROKEN_OFF],
  'answers 500 to some requests': [/500/, (reply) => ({ ...reply, status: 500 })],
  'lets some requests pass': [/passed|200/, ({ fields }) => json(200, {}, fields)],
}

/** Every fault of the limits. */
export const LIMIT_FAULTS: readonly Fault[] = [
  ...REPLIES.map(([does, breaks, matches, change, run]) => {
    return { does, breaks, exchange: changing(matches, change), ...(run && { run }) }
  }),
  {
    does: 'has a clock that is an hour behind',
    // A wrong clock is no fault of the API.
    breaks: {},
    untestable: { C16: /360[01] s behind/ },
    run: 'windows',
    exchange: changing(all, (reply) => {
      const behind = new Date(Date.parse(String(reply.fields.Date)) - 3_600_000)
      return withFields(reset((seconds) => seconds - 3600)(reply), { Date: behind.toUTCString() })
    }),
  },
  {
    does: 'sends no Date',
    breaks: {},
    untestable: { C16: /unknown/ },
    exchange: changing(all, (reply) => without(reply, 'Date')),
  },
  ...WINDOW_FAULTS,
  ...Object.entries(KEYS).map(([what, key]) => {
    return { does: `has a window for ${what}`, breaks: { H69: /200/ }, key }
  }),
  ...Object.entries(IN_FLOOD).map(([does, [came, change]]) => ({
    does: `${does} under a flood`,
    breaks: { H125: came },
    run: 'complete' as const,
    exchange: inFlood(change),
  })),
]
