import { groupFields } from '../../http/fields.ts'
import { type FloodReport, type FloodRequest, flood } from '../flood.ts'
import { type Account, createLedger, type LedgerFault } from '../ledger.ts'
import { foldFields } from '../observation.ts'
import type { Question } from '../question.ts'
import type { Stage } from '../stage.ts'
import { tlsOptions } from '../target.ts'
import type { Broken, Endpoint, Finding, Latencies } from '../verdict.ts'
import { broken, concludeAll, type Round, untested } from './round.ts'
import { type Admitted, usualRequest } from './usual-request.ts'

/** H125: each endpoint type under a flood, with a client beside it that stays within the limit of the other type. */
export const floods: Round = {
  promises: ['C15', 'H125'],
  cost: ({ quick, limits, flood: { seconds } }) => {
    if (quick) return undefined
    const beside = limits.api.requests + limits.oauth.requests
    return { requests: beside, seconds: 2 * (Math.max(limits.api.window, limits.oauth.window) + seconds) }
  },
  async run(stage) {
    const { admitted } = stage
    if (admitted === undefined) return untested(['H125'], 'no token was admitted')
    // The last one leaves room in the window of /oauth/token, in which the tokens are revoked.
    return [...(await floodOne(stage, admitted, 'oauth')), ...(await floodOne(stage, admitted, 'api'))]
  },
}

async function floodOne(stage: Stage, admitted: Admitted, endpoint: Endpoint): Promise<Finding[]> {
  const { options, clock } = stage
  const other = endpoint === 'api' ? 'oauth' : 'api'
  const limit = options.limits[endpoint]
  const { seconds, connections } = options.flood
  await Promise.all([
    stage.waitForWindow(endpoint, 'flood'),
    stage.waitForWindow(other, 'client beside the flood'),
  ])
  const { question, status } = usualRequest(options.path, admitted, endpoint)
  const ledger = createLedger(limit, undefined)
  const refusals: number[] = []
  ledger.add({ status }, await stage.send(question))
  const length = floodLength(stage, refusals)
  const running = flood({
    url: options.url.origin,
    tls: tlsOptions(options),
    requests: [floodRequest(question)],
    connections,
    pipelining: 1,
    until: { seconds: seconds + LONGER },
    signal: length.signal,
    onResponse(_request, { status: came, headers, body, time }) {
      if (came === 429) refusals.push(time)
      const observation = { status: came, fields: foldFields(headers), body, at: clock.wall() }
      ledger.add({ status }, observation)
      stage.records.addFlooded(question, observation)
      length.responded()
    },
  })
  const [report, beside] = await Promise.all([running, clientBeside(stage, admitted, other)])
  stage.signal.throwIfAborted()
  stage.floodRequests += report.sent
  const account = ledger.account()
  stage.floods.push({
    endpoint,
    connections,
    seconds: report.took,
    passed: account.passed.reduce((sum, passed) => sum + passed, 0),
    refusals: latencies(refusals),
    beside: latencies(beside.times),
  })
  const sent = `${question.what}, ${report.sent} times in ${Math.round(report.took)} s over ${connections} connections`
  const counted = account.told || report.took < limit.window
  const found = [
    ...faultsOf(account, counted).flatMap((fault) => brokenBy(fault, sent)),
    ...lost(report, sent),
    ...beside.found,
  ]
  if (found.length === 0 && account.refused === 0)
    return untested(['H125'], `${sent}: too few to use up a window`)
  return [
    ...concludeAll(['C15', 'H125'], found),
    ...(counted
      ? []
      : untested(['H125'], 'how many passed in each window: no response says which window it is of')),
  ]
}

/** With fewer refusals (429) a flood is too short to judge, so it goes on, up to so much longer (seconds). */
const ENOUGH = 100
const LONGER = 20

interface FloodLength {
  /** Ends the flood. */
  readonly signal: AbortSignal
  /** Called after each response. */
  responded(): void
}

/**
 * Ends a flood after its length if it has brought enough refusals, otherwise when it has: where the server or this machine is slow,
 * few requests fit into a second. A server that has not responded for `LONGEST_WAIT` does not prolong it.
 */
function floodLength({ clock, options, signal, pause }: Stage, refusals: readonly unknown[]): FloodLength {
  const ended = new AbortController()
  let due = false
  let latest = clock.monotonic()
  const endIf = (reached: boolean): void => {
    if (due && reached) ended.abort()
  }
  const atItsLength = (): void => {
    due = true
    endIf(refusals.length >= ENOUGH || clock.monotonic() - latest > LONGEST_WAIT)
  }
  // It rejects if the run ends, and so does the flood.
  pause(options.flood.seconds * 1000).then(atItsLength, () => {})
  return {
    signal: AbortSignal.any([signal, ended.signal]),
    responded() {
      latest = clock.monotonic()
      endIf(refusals.length >= ENOUGH)
    },
  }
}

/** A flood that is longer than a window has to be told which window each response is of. */
function faultsOf({ faults }: Account, counted: boolean): readonly LedgerFault[] {
  return counted ? faults : faults.filter(({ promise }) => promise !== 'C14')
}

function floodRequest({ path, method, fields, body }: Question): FloodRequest {
  return {
    method: method === 'POST' ? 'POST' : 'GET',
    path,
    headers: groupFields(fields, 'kept'),
    ...(body === undefined ? {} : { body }),
  }
}

/** What the rate-limit fields of one response lack, the other rounds find, too. */
function brokenBy({ promise, of, text }: LedgerFault, sent: string): Broken[] {
  if (promise === 'C16' && of === 'responses') return []
  const wanted = 'exactly the limit passes in each window, all else is 429'
  const id = promise === 'C15' || promise === 'C16' ? promise : 'H125'
  return [broken(id, { sent, came: text, wanted, clause: 'device API §8' })]
}

/** Longer than a response to a refused request may take (ms). */
const LONGEST_WAIT = 5_000

function lost({ faults, longestWait }: FloodReport, sent: string): Broken[] {
  const hung =
    longestWait > LONGEST_WAIT
      ? [`a request had no response for ${Math.round(longestWait / 1000)} s when the flood ended`]
      : []
  return [...faults, ...hung].map((came) =>
    broken('H125', { sent, came, wanted: 'a response to every request', clause: 'device API §7 and §8' }),
  )
}

interface Beside {
  /** Of each request (ms). */
  readonly times: readonly number[]
  readonly found: readonly Broken[]
}

/** The client beside the flood leaves this many requests of its window. */
const SPARE = 3

/** Faults of the client beside the flood after which it stops: more would say the same. */
const MOST_FAULTS = 3

/** Spreads requests that all pass over the flood. */
async function clientBeside(stage: Stage, admitted: Admitted, endpoint: Endpoint): Promise<Beside> {
  const { clock, options } = stage
  const length = options.flood.seconds * 1000
  const { question, status } = usualRequest(options.path, admitted, endpoint)
  const client = stage.http1(1)
  const count = Math.max(1, options.limits[endpoint].requests - SPARE)
  const start = clock.monotonic()
  const times: number[] = []
  const found: Broken[] = []
  for (let i = 0; i < count && found.length < MOST_FAULTS; i += 1) {
    await stage.pause(start + (i * length) / count - clock.monotonic())
    if (clock.monotonic() - start > length) break
    const answer = await stage.send(question, client)
    times.push(answer.ms)
    if (answer.status === status) continue
    const sent = { what: `${question.what}, beside a flood of the other endpoint type` }
    found.push(
      broken('H125', stage.departure(sent, answer, `${status}, as without the flood`, 'device API §8')),
    )
  }
  client.close()
  return { times, found }
}

function latencies(times: readonly number[]): Latencies {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? 0
  return { responses: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 }
}
