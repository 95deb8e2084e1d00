import type { Endpoint } from '../../http/admission.ts'
import type { Client } from '../client.ts'
import { described, ENDPOINTS, type Received, refreshGrant, UNPROCESSED } from '../exchange.ts'
import { endpointName, type Server } from '../server.ts'
import { type Broken, broken, type FloodFigures, kept, untested } from '../verdict.ts'
import { createLedger, windowEndOf } from '../windows.ts'
import { type Facts, type Findings, type Round, type UsualRequest, usualRequest } from './round.ts'

/** Requests past the limit, besides one for each connection. */
const EXTRA = 10

/** Windows that are tried: a busy machine may miss the end of a short one. */
const WINDOWS_TRIED = 2

const PROMISES = ['C14', 'C15'] as const

/**
 * C14: a new window of each endpoint type, used up by many connections at once, and another one over one HTTP/2 connection, which has
 * to be the window of HTTP/1.1.
 */
export const crowds: Round = {
  promises: PROMISES,
  cost({ quick, url, limits: { api, oauth }, flood }) {
    if (quick) return undefined
    const ways = url.protocol === 'https:' ? 2 : 1
    const requests = ways * WINDOWS_TRIED * (api.requests + oauth.requests + 2 * (EXTRA + flood.connections))
    return { requests, seconds: (ways - 1) * Math.max(api.window, oauth.window) + 2 * ways }
  },
  needsTokens: true,
  async *run(server, facts) {
    const { url, flood } = server.options
    const http1 = async () => server.http1(flood.connections)
    for (const each of ENDPOINTS)
      yield* useUp(server, facts, each, http1, `over ${flood.connections} connections`)
    if (url.protocol !== 'https:') return undefined
    const probe = await server.http2()
    if (typeof probe === 'string') return yield* untested(PROMISES, `over HTTP/2: ${probe}`)
    probe.close()
    const later = { ...facts, openings: new Map() }
    for (const each of ENDPOINTS) yield* useUp(server, later, each, () => server.http2(), 'over HTTP/2')
    return undefined
  },
}

/**
 * Opens a new window with one request, then sends more than the rest of it at once.
 *
 * @param connect opens connections for one window, because a server closes one that is idle for a window
 */
async function* useUp(
  server: Server,
  facts: Facts,
  endpoint: Endpoint,
  connect: () => Promise<Client | string>,
  how: string,
): Findings {
  const { limits, flood } = server.options
  const limit = limits[endpoint]
  // A refresh is the more real request. But a replaced refresh token would revoke the login if it were used twice.
  const { question, expected } =
    endpoint === 'oauth' && facts.refreshing === 'keeps'
      ? { question: refreshGrant(facts.logins[0].refreshToken), expected: 200 }
      : usualRequest(server, facts, endpoint)
  const total = limit.requests + EXTRA + flood.connections
  let opening = usableOpening(server, facts, endpoint)
  for (let attempt = 1; attempt <= WINDOWS_TRIED; attempt += 1) {
    if (opening === undefined) {
      await server.waitForWindow(endpoint, how)
      opening = await server.send(question)
    }
    const client = await connect()
    if (typeof client === 'string') return yield* untested(PROMISES, `${how}: ${client}`)
    const responses = await Promise.all(
      Array.from({ length: total - 1 }, () => server.send(question, client)),
    )
    client.close()
    if (responses.some(({ failure }) => failure === UNPROCESSED.message))
      return yield* untested(PROMISES, `${how}: ${UNPROCESSED.message}`)
    if (server.clock.wall() < windowEndOf(opening, limit)) {
      const ledger = createLedger(limit, 1)
      ledger.add(opening.status, opening)
      for (const received of responses) ledger.add(expected, received)
      const { passed, faults } = ledger.account()
      server.say(`${endpointName(endpoint)}: ${passed.join(' + ')} of ${total} passed ${how}`)
      const sent = `${question.what}, ${total} times ${how}`
      // A wrong status past the limit breaks C15; a wrong status below it also shows as too few passes (C14).
      for (const { promise = 'C15', text } of faults)
        yield broken(promise, sent, text, 'exactly the limit passes, all else is 429')
      return yield* kept(PROMISES)
    }
    opening = undefined
  }
  return yield* untested(PROMISES, `${how}: the server is too slow to use up a window`)
}

/** The window that the recovery has just opened, unless most of it is over: waiting for another would take its whole length. */
function usableOpening(server: Server, { openings }: Facts, endpoint: Endpoint): Received | undefined {
  const opening = openings.get(endpoint)?.received
  const limit = server.options.limits[endpoint]
  const left = opening === undefined ? 0 : windowEndOf(opening, limit) - server.clock.wall()
  return left > limit.window * 500 ? opening : undefined
}

/** H125: each endpoint type under a flood, with a client beside it that stays within the limit of the other type. */
export const floods: Round = {
  promises: ['C15', 'H125'],
  cost({ quick, limits, flood: { seconds } }) {
    if (quick) return undefined
    const beside = limits.api.requests + limits.oauth.requests
    return { requests: beside, seconds: 2 * (Math.max(limits.api.window, limits.oauth.window) + seconds) }
  },
  needsTokens: true,
  async *run(server, facts) {
    // The last one leaves room in the window of /oauth/token, in which the tokens are revoked.
    const both = [yield* floodOne(server, facts, 'oauth'), yield* floodOne(server, facts, 'api')]
    return { ...facts, floods: both }
  },
}

async function* floodOne(server: Server, facts: Facts, endpoint: Endpoint): Findings<FloodFigures> {
  const { options, signal } = server
  const other = endpoint === 'api' ? 'oauth' : 'api'
  const limit = options.limits[endpoint]
  const { connections } = options.flood
  await server.waitForWindow(endpoint, 'flood')
  await server.waitForWindow(other, 'client beside the flood')
  const usual = usualRequest(server, facts, endpoint)
  const [{ account, seconds, sent, refusals }, beside] = await Promise.all([
    sendFlood(server, endpoint, usual),
    clientBeside(server, usualRequest(server, facts, other), options.limits[other].requests - SPARE),
  ])
  signal.throwIfAborted()
  const what = `${usual.question.what}, ${sent} times in ${Math.round(seconds)} s over ${connections} connections`
  // A flood that is longer than a window has to be told which window each response is of.
  const counted = account.told || seconds < limit.window
  const faults = account.faults.filter(({ promise }) => counted || promise !== 'C14')
  const wanted = 'exactly the limit passes in each window, all else is 429'
  yield* faults.map(({ promise, text }) =>
    broken(promise === undefined || promise === 'C14' ? 'H125' : promise, what, text, wanted),
  )
  yield* beside.found
  if (faults.length > 0 || beside.found.length > 0 || account.refused > 0) {
    yield* kept(['C15', 'H125'])
    if (!counted)
      yield* untested(['H125'], 'how many passed in each window: no response says which window it is of')
  } else yield* untested(['H125'], `${what}: too few to use up a window`)
  const passed = account.passed.reduce((sum, each) => sum + each, 0)
  const times = { refusals: latencies(refusals), beside: latencies(beside.times) }
  return { endpoint, connections, seconds, passed, ...times }
}

/** With fewer refusals of any status a flood is too short to judge, so it goes on, up to so much longer (seconds). */
const ENOUGH = 100
const LONGER = 20

/** The pause after a request without a response (ms): a server that refuses connections is not asked without a pause. */
const AFTER_LOSS = 100

/**
 * Sends the same request over each connection, one after the other, for the length of the flood; or, where server or machine are slow
 * and few requests fit into a second, until enough are refused. Resolves to the times to the end of each 429 (ms), too.
 */
async function sendFlood(server: Server, endpoint: Endpoint, { question, expected }: UsualRequest) {
  const { clock, options, signal } = server
  const length = options.flood.seconds * 1000
  const ledger = createLedger(options.limits[endpoint], undefined)
  const client = server.http1(options.flood.connections)
  const refusals: number[] = []
  const start = clock.monotonic()
  let sent = 0
  let refused = 0

  function isOver(): boolean {
    const lasts = clock.monotonic() - start
    return signal.aborted || lasts >= length + (refused >= ENOUGH ? 0 : LONGER * 1000)
  }

  async function sendInTurn(): Promise<void> {
    while (!isOver()) {
      const before = clock.monotonic()
      const received = await server.sendInFlood(question, client)
      sent += 1
      // The run was stopped, and its connections are closed.
      if (signal.aborted) return
      const broke = received.status !== 0 && received.failure !== undefined ? [described(received)] : []
      ledger.add(expected, received, broke)
      if (received.status === 429) refusals.push(clock.monotonic() - before)
      if (received.status !== 0 && received.status !== expected) refused += 1
      if (received.status === 0) await server.pause(AFTER_LOSS)
    }
  }

  await Promise.all(Array.from({ length: options.flood.connections }, sendInTurn))
  client.close()
  return { account: ledger.account(), seconds: (clock.monotonic() - start) / 1000, sent, refusals }
}

/** The client beside the flood leaves this many requests of its window. */
const SPARE = 3

/** Faults of the client beside the flood after which it stops: more would say the same. */
const MOST_FAULTS = 3

/** Spreads requests that all pass over the flood. Resolves to the time of each (ms), too. */
async function clientBeside(server: Server, { question, expected }: UsualRequest, most: number) {
  const { clock, options } = server
  const length = options.flood.seconds * 1000
  const client = server.http1(1)
  const start = clock.monotonic()
  const times: number[] = []
  const found: Broken[] = []
  const sent = `${question.what}, beside a flood of the other endpoint type`
  for (let i = 0; i < most && found.length < MOST_FAULTS; i += 1) {
    await server.pause(start + (i * length) / most - clock.monotonic())
    if (clock.monotonic() - start > length) break
    const received = await server.send(question, client)
    times.push(received.ms)
    if (received.status !== expected)
      found.push(broken('H125', sent, received, `${expected}, as without the flood`))
  }
  client.close()
  return { times, found }
}

function latencies(times: readonly number[]) {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? 0
  return { responses: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 }
}
