import type { Endpoint } from '../http/admission.ts'
import { SHARED } from './burst.ts'
import type { VerifyClient } from './client.ts'
import { type Conversation, endpointName } from './conversation.ts'
import { createLedger } from './ledger.ts'
import { described, ENDPOINTS, type Received, refreshGrant, UNPROCESSED } from './question.ts'
import type { Known } from './rows.ts'
import { limitFieldsOf, statedReset } from './stated-limits.ts'
import { type UsualRequest, usualRequest } from './used-up-windows.ts'
import type { FloodFigures } from './verdict.ts'

/** The requests past the limit, in addition to one for each connection. */
export const EXTRA = 10

const PROMISES = ['C14', 'C15'] as const

/**
 * C14: uses up a new window of each endpoint type over many connections at once, and another one over one HTTP/2 connection, which must
 * share its window with HTTP/1.1.
 */
export async function crowds(conversation: Conversation, known: Known): Promise<void> {
  const { url, flood } = conversation.options
  const http1 = async () => conversation.http1(flood.connections)
  for (const each of ENDPOINTS)
    await useUp(conversation, known, each, http1, `over ${flood.connections} connections`)
  if (url.protocol !== 'https:') return
  const probe = await conversation.http2()
  if (typeof probe === 'string') return conversation.findings.kept(PROMISES, `not over HTTP/2: ${probe}`)
  probe.close()
  for (const each of ENDPOINTS)
    await useUp(conversation, known, each, () => conversation.http2(), 'over HTTP/2')
}

/**
 * Opens a new window with one request, then sends more requests at once than the window has left.
 *
 * @param connect opens connections for one window: a server closes a connection that is idle as long as a window
 */
async function useUp(
  conversation: Conversation,
  known: Known,
  endpoint: Endpoint,
  connect: () => Promise<VerifyClient | string>,
  how: string,
): Promise<void> {
  const { options, findings, time, everyResponse } = conversation
  const limit = options.limits[endpoint]
  // A refresh is more realistic. But where a refresh replaces the refresh token, a second use would revoke the login.
  const { question, expected } =
    endpoint === 'oauth' && known.refreshing === 'keeps'
      ? { question: refreshGrant(known.logins[0].refreshToken), expected: 200 }
      : usualRequest(conversation, known, endpoint)
  const total = limit.requests + EXTRA + options.flood.connections
  const opening = (await freshWindow(conversation, endpoint, how)) ?? (await conversation.send(question))
  const others = limitFieldsOf(opening)?.remaining ?? limit.requests
  // If C13 is broken, the server counts wrongly and never states a new window: then this shows nothing about other clients.
  if (others < limit.requests - 1 && !findings.isBroken('C13')) return findings.untestable(['C14'], SHARED)
  const client = await connect()
  if (typeof client === 'string') return findings.untestable(PROMISES, `${how}: ${client}`)
  const rest = Array.from({ length: total - 1 }, () => conversation.send(question, client))
  const responses = await Promise.all(rest)
  client.close()
  if (responses.some(({ failure }) => failure === UNPROCESSED.message))
    return findings.kept(PROMISES, `not ${how}: ${UNPROCESSED.message}`)
  // A window that is aligned to the clock ends at its reset, before its full length.
  const reset = everyResponse.clock === 'right' ? statedReset(opening, limit, 'right') : undefined
  const end = Math.min(1000 * (reset ?? Number.POSITIVE_INFINITY), opening.sentAt + 1000 * limit.window)
  if (time.wall() >= end) return findings.untestable(PROMISES, `${how}: a window ended before it was used up`)
  const ledger = createLedger(limit, 1, everyResponse.clock)
  ledger.add(opening.status, opening)
  for (const received of responses) ledger.add(expected, received)
  const { passed, faults, shared } = ledger.account()
  conversation.say(`${endpointName(endpoint)}: ${passed.join(' + ')} of ${total} passed ${how}`)
  if (shared && !findings.isBroken('C13')) return findings.untestable(['C14'], SHARED)
  // A wrong status past the limit breaks C15; a wrong status below it also shows as too few passes (C14).
  for (const { promise = 'C15', text } of faults)
    findings.broken(
      promise,
      `${question.what}, ${total} times ${how}`,
      text,
      'exactly the limit passes, all else is 429',
    )
  findings.kept(PROMISES)
}

/** The response that has just opened a window; otherwise undefined, after a wait until the next request opens one. */
async function freshWindow(
  conversation: Conversation,
  endpoint: Endpoint,
  how: string,
): Promise<Received | undefined> {
  const { requests, window } = conversation.options.limits[endpoint]
  const latest = conversation.latest.get(endpoint)
  const isFirst = latest !== undefined && limitFieldsOf(latest)?.remaining === requests - 1
  if (isFirst && conversation.time.wall() < latest.sentAt + 500 * window) return latest
  await conversation.waitForWindow(endpoint, how)
  return undefined
}

/** H125: floods each endpoint type, with a client beside the flood that stays within the limit of the other type. */
export async function floods(conversation: Conversation, known: Known): Promise<Known> {
  // The flood of the API comes last: it leaves room in the window of /oauth/token, in which the tokens are revoked.
  const both = [await floodOne(conversation, known, 'oauth'), await floodOne(conversation, known, 'api')]
  return { ...known, floods: both }
}

async function floodOne(conversation: Conversation, known: Known, endpoint: Endpoint): Promise<FloodFigures> {
  const { options, findings } = conversation
  const other = endpoint === 'api' ? 'oauth' : 'api'
  const { connections } = options.flood
  await conversation.waitForWindow(endpoint, 'flood')
  await conversation.waitForWindow(other, 'client beside the flood')
  const usual = usualRequest(conversation, known, endpoint)
  const [{ account, seconds, sent, refusals }, beside] = await Promise.all([
    sendFlood(conversation, endpoint, usual),
    clientBeside(
      conversation,
      usualRequest(conversation, known, other),
      options.limits[other].requests - SPARE,
    ),
  ])
  conversation.signal.throwIfAborted()
  const what = `${usual.question.what}, ${sent} times in ${Math.round(seconds)} s over ${connections} connections`
  // In a flood that is longer than a window, each response must state its window.
  const counted = account.told || seconds < options.limits[endpoint].window
  const shared = account.shared && !findings.isBroken('C13')
  for (const { promise, text } of account.faults.filter(
    (fault) => (counted && !shared) || fault.promise !== 'C14',
  ))
    findings.broken(
      promise === undefined || promise === 'C14' ? 'H125' : promise,
      what,
      text,
      'exactly the limit passes in each window, all else is 429',
    )
  if (account.refused + account.other === 0)
    findings.untestable(['H125'], `${what}: too few to use up a window`)
  else if (shared) findings.untestable(['H125'], SHARED)
  else if (counted) findings.kept(['C15', 'H125'])
  else findings.untestable(['H125'], 'no response of a flood says which window it is of')
  const passed = account.passed.reduce((sum, each) => sum + each, 0)
  return {
    endpoint,
    connections,
    seconds,
    passed,
    refusals: latencies(refusals),
    beside: latencies(beside),
  }
}

/** The pause after a request without a response (ms): a server that refuses connections is not asked in a tight loop. */
const AFTER_LOSS = 100

/**
 * Sends the same request over each connection again and again, for the length of the flood. `refusals`: the time to the end of each 429
 * (ms).
 */
async function sendFlood(
  conversation: Conversation,
  endpoint: Endpoint,
  { question, expected }: UsualRequest,
) {
  const { time, options, signal } = conversation
  const { seconds: length, connections } = options.flood
  const ledger = createLedger(options.limits[endpoint], undefined, conversation.everyResponse.clock)
  const client = conversation.http1(connections)
  const refusals: number[] = []
  const start = time.monotonic()
  let sent = 0

  async function sendInTurn(): Promise<void> {
    while (!signal.aborted && time.monotonic() < start + 1000 * length) {
      const before = time.monotonic()
      const received = await conversation.sendInFlood(question, client)
      sent += 1
      // The run was stopped and has closed its connections: the response proves nothing.
      if (signal.aborted) return
      const broke = received.status !== 0 && received.failure !== undefined ? [described(received)] : []
      ledger.add(expected, received, broke)
      if (received.status === 429) refusals.push(time.monotonic() - before)
      if (received.status === 0) await conversation.pauseUntil(time.wall() + AFTER_LOSS)
    }
  }

  await Promise.all(Array.from({ length: connections }, sendInTurn))
  client.close()
  return { account: ledger.account(), seconds: (time.monotonic() - start) / 1000, sent, refusals }
}

/** The client beside the flood leaves this many requests of its window. */
const SPARE = 3

/** The faults after which the client beside the flood stops: further ones would be the same. */
const MOST_FAULTS = 3

/**
 * Spreads requests over the time of the flood. The server must let every one of them pass. Resolves to the time that the head of each
 * response took (ms).
 */
async function clientBeside(
  conversation: Conversation,
  { question, expected }: UsualRequest,
  most: number,
): Promise<readonly number[]> {
  const { time, options, findings } = conversation
  const length = 1000 * options.flood.seconds
  const client = conversation.http1(1)
  const start = time.wall()
  const times: number[] = []
  let faults = 0
  for (let i = 0; i < most && faults < MOST_FAULTS; i += 1) {
    await conversation.pauseUntil(start + (i * length) / most)
    if (time.wall() > start + length) break
    const received = await conversation.send(question, client)
    times.push(received.ms)
    if (received.status === expected) continue
    faults += 1
    const sent = `${question.what}, beside a flood of the other endpoint type`
    findings.broken('H125', sent, received, `${expected}, as without the flood`)
  }
  await conversation.pauseUntil(start + length)
  client.close()
  return times
}

function latencies(times: readonly number[]) {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? 0
  return { responses: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 }
}
