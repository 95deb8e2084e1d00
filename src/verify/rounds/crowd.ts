import { type Answer, passedLimit } from '../answer.ts'
import type { Client } from '../client.ts'
import { createLedger, type LedgerFault } from '../ledger.ts'
import { apiRequest, type Question, refreshGrant, UNSUPPORTED_GRANT } from '../question.ts'
import type { Stage } from '../stage.ts'
import type { Departure, Endpoint, Finding } from '../verdict.ts'
import { conclude, type Round, untested } from './round.ts'

/** Requests past the limit, besides one for each connection. */
const PAST = 10

/** C14: a new window of each endpoint type, used up by many connections at once. The recovery has just opened both. */
export const manyConnections: Round = {
  promises: ['C14', 'C15'],
  cost: ({ quick, limits, flood }) => (quick ? undefined : crowdCost(limits, flood.connections, 0)),
  run: (stage) => {
    const { connections } = stage.options.flood
    const client = stage.http1(connections)
    return crowd(stage, async () => client, `over ${connections} connections`)
  },
}

/** C14: the same over one HTTP/2 connection. HTTP/1.1 has opened the window. */
export const http2: Round = {
  promises: ['C14'],
  cost: ({ quick, url, limits }) =>
    quick || url.protocol !== 'https:'
      ? undefined
      : crowdCost(limits, 1, Math.max(limits.api.window, limits.oauth.window)),
  async run(stage) {
    if ((await stage.http2()) === undefined)
      return untested(['C14'], 'over HTTP/2, which the server does not offer')
    // A server closes a connection that is idle for the length of a window, so each window gets its own.
    return (await crowd(stage, stage.http2, 'over HTTP/2')).filter(({ promise }) => promise === 'C14')
  },
}

function crowdCost(
  { api, oauth }: Stage['options']['limits'],
  connections: number,
  wait: number,
): { requests: number; seconds: number } {
  return {
    requests: api.requests + oauth.requests + 2 * (PAST + connections),
    seconds: wait + 2,
  }
}

/** A connection, or connections, for one window. Undefined if the server does not offer the protocol any more. */
type Connect = () => Promise<Client | undefined>

async function crowd(stage: Stage, connect: Connect, how: string): Promise<Finding[]> {
  if (stage.admitted === undefined) return untested(['C14', 'C15'], 'no token was admitted')
  const found = await Promise.all([useUp(stage, 'api', connect, how), useUp(stage, 'oauth', connect, how)])
  if (found.includes('too slow'))
    return untested(['C14'], `${how}: the server is too slow to use up a window`)
  const departures = found.flatMap((each) => (each === 'too slow' ? [] : each))
  const c15 = departures.filter(({ promise }) => promise === 'C15')
  return [
    ...conclude(
      'C14',
      departures.filter(({ promise }) => promise === 'C14').map(({ departure }) => departure),
    ),
    ...conclude(
      'C15',
      c15.map(({ departure }) => departure),
    ),
  ]
}

interface CrowdDeparture {
  readonly promise: 'C14' | 'C15'
  readonly departure: Departure
}

/** Windows that are tried: a busy machine may miss the end of a short one. */
const ATTEMPTS = 2

/** Opens a new window with one request, then sends more than the rest of it at once. */
async function useUp(
  stage: Stage,
  endpoint: Endpoint,
  connect: Connect,
  how: string,
): Promise<readonly CrowdDeparture[] | 'too slow'> {
  const limit = stage.options.limits[endpoint]
  const { question, status } = kindOf(stage, endpoint)
  const name = endpoint === 'api' ? 'API' : '/oauth/token'
  const total = limit.requests - 1 + PAST + stage.options.flood.connections
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const opening = takeOpening(stage, endpoint) ?? (await openWindow(stage, endpoint, how))
    const client = await connect()
    const answers = await Promise.all(Array.from({ length: total }, () => stage.send(question, client)))
    if (stage.clock.wall() - opening.sentAt >= limit.window * 1000) continue
    const ledger = createLedger(limit, 1)
    ledger.add({ status: opening.status }, opening)
    for (const answer of answers) ledger.add({ status }, answer)
    const passed = [opening, ...answers].filter(passedLimit).length
    stage.say(`${name}: ${passed} of ${total + 1} passed ${how}`)
    return ledger
      .account()
      .faults.flatMap((fault) => departuresOf(fault, `${question.what}, ${total + 1} times ${how}`))
  }
  return 'too slow'
}

async function openWindow(stage: Stage, endpoint: Endpoint, how: string): Promise<Answer> {
  await stage.waitForWindow(endpoint, `${how} a new window is needed`)
  return stage.send(kindOf(stage, endpoint).question)
}

/** The window that the recovery has just opened, unless most of it is over: waiting for another would take its whole length. */
function takeOpening({ openings, options, clock }: Stage, endpoint: Endpoint): Answer | undefined {
  const opening = openings.get(endpoint)
  openings.delete(endpoint)
  if (opening === undefined || !passedLimit(opening)) return undefined
  return clock.wall() - opening.sentAt < options.limits[endpoint].window * 500 ? opening : undefined
}

/** What C16 says of a response is found in each of them, by the records of the run. */
function departuresOf({ promise, text }: LedgerFault, sent: string): CrowdDeparture[] {
  if (promise === 'C16') return []
  const departure = {
    sent,
    came: text,
    wanted: 'exactly the limit passes, all else is 429',
    clause: 'device API §8',
  }
  // The status of a response is wrong only behind the limit, or too few pass.
  return [{ promise: promise ?? 'C15', departure }]
}

/** A spent refresh token would revoke the login, so a server that replaces it gets another request. */
function kindOf(stage: Stage, endpoint: Endpoint): { readonly question: Question; readonly status: number } {
  const { options, admitted } = stage
  if (endpoint === 'api')
    return {
      question: apiRequest(options.path, admitted?.accessToken ?? ''),
      status: admitted?.status ?? 200,
    }
  const [grant] = stage.grants
  return stage.refreshing === 'keeps'
    ? { question: refreshGrant(grant?.refreshToken ?? ''), status: 200 }
    : { question: UNSUPPORTED_GRANT, status: 400 }
}
