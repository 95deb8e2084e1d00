import { type Answer, passedLimit, windowEndOf } from '../answer.ts'
import type { Client } from '../exchange.ts'
import { createLedger, type LedgerFault } from '../ledger.ts'
import { refreshGrant } from '../question.ts'
import type { Stage } from '../stage.ts'
import { type Broken, type Endpoint, endpointName, type Finding } from '../verdict.ts'
import { broken, type Cost, concludeAll, type Round, untested } from './round.ts'
import { type Admitted, type UsualRequest, usualRequest } from './usual-request.ts'

/** Requests past the limit, besides one for each connection. */
const EXTRA = 10

/** Windows that are tried: a busy machine may miss the end of a short one. */
const WINDOWS_TRIED = 2

/** C14: a new window of each endpoint type, used up by many connections at once. The recovery has just opened both. */
export const manyConnections: Round = {
  promises: ['C14', 'C15'],
  cost: ({ quick, limits, flood }) => (quick ? undefined : crowdCost(limits, flood.connections, 0)),
  async run(stage) {
    const { connections } = stage.options.flood
    return crowd(stage, async () => stage.http1(connections), `over ${connections} connections`)
  },
}

/** C14: the same over one HTTP/2 connection. HTTP/1.1 has opened the window. */
export const http2: Round = {
  promises: ['C14', 'C15'],
  cost: ({ quick, url, limits, flood }) => {
    if (quick || url.protocol !== 'https:') return undefined
    return crowdCost(limits, flood.connections, Math.max(limits.api.window, limits.oauth.window))
  },
  async run(stage) {
    const probe = await stage.http2()
    if (typeof probe === 'string') return untested(['C14', 'C15'], `over HTTP/2: ${probe}`)
    probe.close()
    return crowd(stage, stage.http2, 'over HTTP/2')
  },
}

function crowdCost({ api, oauth }: Stage['options']['limits'], connections: number, wait: number): Cost {
  const once = api.requests + oauth.requests + 2 * (EXTRA + connections)
  return { requests: WINDOWS_TRIED * once, seconds: wait + 2 }
}

/** Opens a connection, or connections, for one window; or why it cannot. A server closes one that is idle for a window. */
type Connect = () => Promise<Client | string>

async function crowd(stage: Stage, connect: Connect, how: string): Promise<Finding[]> {
  const { admitted } = stage
  if (admitted === undefined) return untested(['C14', 'C15'], 'no token was admitted')
  const used = await Promise.all([
    useUp(stage, admitted, 'api', connect, how),
    useUp(stage, admitted, 'oauth', connect, how),
  ])
  const failure = used.find((each) => typeof each === 'string')
  if (failure !== undefined) return untested(['C14', 'C15'], `${how}: ${failure}`)
  return concludeAll(
    ['C14', 'C15'],
    used.flatMap((each) => (typeof each === 'string' ? [] : each)),
  )
}

/** Opens a new window with one request, then sends more than the rest of it at once. Or says why that failed. */
async function useUp(
  stage: Stage,
  admitted: Admitted,
  endpoint: Endpoint,
  connect: Connect,
  how: string,
): Promise<readonly Broken[] | string> {
  const limit = stage.options.limits[endpoint]
  const { question, status } = crowdRequest(stage, admitted, endpoint)
  const total = limit.requests - 1 + EXTRA + stage.options.flood.connections
  for (let attempt = 1; attempt <= WINDOWS_TRIED; attempt += 1) {
    let opening = takeOpening(stage, endpoint)
    if (opening === undefined) {
      await stage.waitForWindow(endpoint, how)
      opening = await stage.send(question)
    }
    const client = await connect()
    if (typeof client === 'string') return client
    const answers = await Promise.all(Array.from({ length: total }, () => stage.send(question, client)))
    client.close()
    if (stage.clock.wall() >= windowEndOf(opening, limit)) continue
    const ledger = createLedger(limit, 1)
    ledger.add({ status: opening.status }, opening)
    for (const answer of answers) ledger.add({ status }, answer)
    const { passed, faults } = ledger.account()
    stage.say(`${endpointName(endpoint)}: ${passed.join(' + ')} of ${total + 1} passed ${how}`)
    return faults.flatMap((fault) => brokenBy(fault, `${question.what}, ${total + 1} times ${how}`))
  }
  return 'the server is too slow to use up a window'
}

/** The window that the recovery has just opened, unless most of it is over: waiting for another would take its whole length. */
function takeOpening({ openings, options, clock }: Stage, endpoint: Endpoint): Answer | undefined {
  const opening = openings.get(endpoint)
  openings.delete(endpoint)
  if (opening === undefined || !passedLimit(opening)) return undefined
  const limit = options.limits[endpoint]
  return windowEndOf(opening, limit) - clock.wall() > limit.window * 500 ? opening : undefined
}

/**
 * What the rate-limit fields of one response lack, the records of the run say. A wrong status past the limit breaks C15; a wrong
 * status below it also shows as too few passes (C14).
 */
function brokenBy({ promise = 'C15', of, text }: LedgerFault, sent: string): Broken[] {
  if (promise === 'C16' && of === 'responses') return []
  const wanted = 'exactly the limit passes, all else is 429'
  return [broken(promise, { sent, came: text, wanted, clause: 'device API §8' })]
}

/** A refresh is the more real request. But a replaced refresh token would revoke the login if it were used twice. */
function crowdRequest(
  { options, grants, refreshing }: Stage,
  admitted: Admitted,
  endpoint: Endpoint,
): UsualRequest {
  const [grant] = grants
  return endpoint === 'oauth' && refreshing === 'keeps' && grant !== undefined
    ? { question: refreshGrant(grant.refreshToken), status: 200 }
    : usualRequest(options.path, admitted, endpoint)
}
