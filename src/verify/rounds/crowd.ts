import type { Endpoint } from '../../http/admission.ts'
import type { Client } from '../client.ts'
import { createLedger } from '../ledger.ts'
import { windowEndOf } from '../limit-fields.ts'
import type { VerifyOptions } from '../options.ts'
import { ENDPOINTS, refreshGrant } from '../question.ts'
import type { Received } from '../received.ts'
import { endpointName, type Server } from '../server.ts'
import { type Broken, broken, type Cost, conclude, untested } from '../verdict.ts'
import { type Found, type Known, type Round, usualRequest, withToken } from './round.ts'

/** Requests past the limit, besides one for each connection. */
const EXTRA = 10

/** Windows that are tried: a busy machine may miss the end of a short one. */
const WINDOWS_TRIED = 2

const PROMISES = ['C14', 'C15'] as const

/** C14: a new window of each endpoint type, used up by many connections at once. The recovery has just opened both. */
export const manyConnections: Round = {
  promises: PROMISES,
  cost: (options) => (options.quick ? undefined : crowdCost(options, 0)),
  run: withToken(PROMISES, (server, known) => {
    const { connections } = server.options.flood
    return crowd(server, known, async () => server.http1(connections), `over ${connections} connections`)
  }),
}

/** C14: the same over one HTTP/2 connection. HTTP/1.1 has opened the window. */
export const http2: Round = {
  promises: PROMISES,
  cost(options) {
    const { quick, url, limits } = options
    if (quick || url.protocol !== 'https:') return undefined
    return crowdCost(options, Math.max(limits.api.window, limits.oauth.window))
  },
  run: withToken(PROMISES, async (server, known) => {
    const probe = await server.http2()
    if (typeof probe === 'string') return { judgements: untested(PROMISES, `over HTTP/2: ${probe}`) }
    probe.close()
    return crowd(server, known, server.http2, 'over HTTP/2')
  }),
}

function crowdCost({ limits: { api, oauth }, flood }: VerifyOptions, wait: number): Cost {
  const once = api.requests + oauth.requests + 2 * (EXTRA + flood.connections)
  return { requests: WINDOWS_TRIED * once, seconds: wait + 2 }
}

/** Opens a connection, or connections, for one window; or why it cannot. A server closes one that is idle for a window. */
type Connect = () => Promise<Client | string>

async function crowd(server: Server, known: Known, connect: Connect, how: string): Promise<Found> {
  const used = await Promise.all(ENDPOINTS.map((endpoint) => useUp(server, known, endpoint, connect, how)))
  const failure = used.find((each) => typeof each === 'string')
  const found = used.filter((each) => typeof each !== 'string').flat()
  const judgements =
    failure === undefined ? conclude(PROMISES, found) : untested(PROMISES, `${how}: ${failure}`)
  return { judgements, facts: { openings: new Map() } }
}

/** Opens a new window with one request, then sends more than the rest of it at once. Or says why that failed. */
async function useUp(
  server: Server,
  known: Known,
  endpoint: Endpoint,
  connect: Connect,
  how: string,
): Promise<readonly Broken[] | string> {
  const { limits, flood } = server.options
  const limit = limits[endpoint]
  const { refreshing, login, admitted } = known
  // A refresh is the more real request. But a replaced refresh token would revoke the login if it were used twice.
  const { question, expected } =
    endpoint === 'oauth' && refreshing === 'keeps'
      ? { question: refreshGrant(login.refreshToken), expected: 200 }
      : usualRequest(server.options, admitted, endpoint)
  const total = limit.requests + EXTRA + flood.connections
  let opening = usableOpening(server, known, endpoint)
  for (let attempt = 1; attempt <= WINDOWS_TRIED; attempt += 1) {
    if (opening === undefined) {
      await server.waitForWindow(endpoint, how)
      opening = await server.send(question)
    }
    const client = await connect()
    if (typeof client === 'string') return client
    const responses = await Promise.all(
      Array.from({ length: total - 1 }, () => server.send(question, client)),
    )
    client.close()
    if (server.clock.wall() < windowEndOf(opening, limit)) {
      const ledger = createLedger(limit, 1)
      ledger.add(opening.status, opening)
      for (const received of responses) ledger.add(expected, received)
      const { passed, faults } = ledger.account()
      server.say(`${endpointName(endpoint)}: ${passed.join(' + ')} of ${total} passed ${how}`)
      const wanted = 'exactly the limit passes, all else is 429'
      // A wrong status past the limit breaks C15; a wrong status below it also shows as too few passes (C14).
      return faults.map(({ promise = 'C15', text }) =>
        broken(promise, `${question.what}, ${total} times ${how}`, text, wanted),
      )
    }
    opening = undefined
  }
  return 'the server is too slow to use up a window'
}

/** The window that the recovery has just opened, unless most of it is over: waiting for another would take its whole length. */
function usableOpening(server: Server, { openings }: Known, endpoint: Endpoint): Received | undefined {
  const opening = openings.get(endpoint)?.received
  if (opening === undefined || opening.status === 0 || opening.status === 429) return undefined
  const limit = server.options.limits[endpoint]
  return windowEndOf(opening, limit) - server.clock.wall() > limit.window * 500 ? opening : undefined
}
