import { type Answer, passedLimit } from '../answer.ts'
import { tlsOptions } from '../client.ts'
import { type FloodReport, type FloodRequest, flood } from '../flood.ts'
import { type Account, createLedger, type LedgerFault } from '../ledger.ts'
import { foldFields, type Observation } from '../observation.ts'
import { apiRequest, type Question, UNSUPPORTED_GRANT } from '../question.ts'
import type { Stage } from '../stage.ts'
import type { Departure, Endpoint, Latencies } from '../verdict.ts'
import { conclude, type Round, untested } from './round.ts'

/** H125: each endpoint type under a flood, with a client beside it that stays within the limit of the other type. */
export const floods: Round = {
  promises: ['C15', 'H125'],
  cost: ({ quick, limits, flood: { seconds } }) => {
    if (quick) return undefined
    const beside = limits.api.requests + limits.oauth.requests
    return { requests: beside, seconds: 2 * (Math.max(limits.api.window, limits.oauth.window) + seconds) }
  },
  async run(stage) {
    if (stage.admitted === undefined) return untested(['H125'], 'no token was admitted')
    const faults = [...(await floodOne(stage, 'oauth')), ...(await floodOne(stage, 'api'))]
    const of = (promise: 'C15' | 'H125'): Departure[] =>
      faults.filter((fault) => fault.promise === promise).map(({ departure }) => departure)
    return [...conclude('H125', of('H125')), ...conclude('C15', of('C15'))]
  },
}

interface FloodFault {
  readonly promise: 'C15' | 'H125'
  readonly departure: Departure
}

async function floodOne(stage: Stage, endpoint: Endpoint): Promise<FloodFault[]> {
  const { options, clock } = stage
  const other = endpoint === 'api' ? 'oauth' : 'api'
  const limit = options.limits[endpoint]
  const { seconds, connections } = options.flood
  await Promise.all([
    stage.waitForWindow(endpoint, 'the flood needs a new window'),
    stage.waitForWindow(other, 'the client beside the flood needs a new window'),
  ])
  const { question, status } = kindOf(stage, endpoint)
  const ledger = createLedger(limit, undefined)
  const refusals: number[] = []
  const counts = { passed: 0, refused: 0 }
  const add = (observation: Observation, time: number): void => {
    if (passedLimit(observation)) counts.passed += 1
    else counts.refused += 1
    if (observation.status === 429) refusals.push(time)
    ledger.add({ status }, observation)
  }
  const opening = await stage.send(question)
  ledger.add({ status }, opening)
  counts.passed += 1
  const running = flood({
    url: options.url.origin,
    tls: tlsOptions(options),
    requests: [floodRequest(question)],
    connections,
    pipelining: 1,
    until: { seconds },
    signal: stage.signal,
    onResponse: (_request, { status, headers, body, time }) =>
      add({ status, fields: foldFields(headers), body, at: clock.wall() }, time),
  })
  const [report, beside] = await Promise.all([running, clientBeside(stage, other, seconds)])
  stage.signal.throwIfAborted()
  stage.floodRequests += report.sent
  stage.floods.push({
    endpoint,
    connections,
    seconds: report.took,
    passed: counts.passed,
    refusals: latencies(refusals),
    beside: latencies(beside.answers.map(({ ms }) => ms)),
  })
  const sent = `${question.what}, ${report.sent} times in ${Math.round(report.took)} s over ${connections} connections`
  return [
    ...countFaults(ledger.account(), report.took < limit.window).flatMap((fault) => ledgerFault(fault, sent)),
    ...lossFaults(report, sent),
    ...beside.faults,
  ]
}

/** A flood that is longer than a window has to be told which window each response is of. */
function countFaults({ told, faults }: Account, oneWindow: boolean): readonly LedgerFault[] {
  return told || oneWindow ? faults : faults.filter(({ promise }) => promise !== 'C14')
}

function floodRequest({ path, method, fields, body }: Question): FloodRequest {
  const headers = Object.fromEntries(pairs(fields))
  return {
    method: method === 'POST' ? 'POST' : 'GET',
    path,
    headers,
    ...(body === undefined ? {} : { body }),
  }
}

function* pairs(fields: readonly string[]): Generator<[string, string], void, void> {
  for (let i = 0; i + 1 < fields.length; i += 2) yield [fields[i] ?? '', fields[i + 1] ?? '']
}

/** What C16 says of a response is found without a flood, too. */
function ledgerFault({ promise, text }: LedgerFault, sent: string): FloodFault[] {
  if (promise === 'C16') return []
  const wanted = 'exactly the limit passes in each window, all else is 429'
  const departure = { sent, came: text, wanted, clause: 'device API §8' }
  return [{ promise: promise === 'C15' ? 'C15' : 'H125', departure }]
}

function lossFaults({ faults }: FloodReport, sent: string): FloodFault[] {
  return faults.map((came) => ({
    promise: 'H125',
    departure: { sent, came, wanted: 'a response to every request', clause: 'device API §7 and §8' },
  }))
}

interface Beside {
  readonly answers: readonly Answer[]
  readonly faults: readonly FloodFault[]
}

/** The client beside the flood leaves this many requests of its window. */
const SPARE = 3

/** Spreads requests that all pass over the flood. */
async function clientBeside(stage: Stage, endpoint: Endpoint, seconds: number): Promise<Beside> {
  const { clock, options } = stage
  const { question, status } = kindOf(stage, endpoint)
  const client = stage.http1(1)
  const count = Math.max(1, options.limits[endpoint].requests - SPARE)
  const interval = (seconds * 1000) / count
  const start = clock.monotonic()
  const answers: Answer[] = []
  const faults: FloodFault[] = []
  for (let i = 0; i < count; i += 1) {
    await stage.pause(start + i * interval - clock.monotonic())
    if (clock.monotonic() - start > seconds * 1000) break
    const answer = await stage.send(question, client)
    answers.push(answer)
    if (answer.status === status) continue
    const departure = stage.departure(
      { what: `${question.what}, beside a flood of the other endpoint type` },
      answer,
      'the response as without the flood',
      'device API §8',
    )
    faults.push({ promise: 'H125', departure })
    if (faults.length === 3) break
  }
  return { answers, faults }
}

function kindOf(stage: Stage, endpoint: Endpoint): { readonly question: Question; readonly status: number } {
  const { options, admitted } = stage
  if (endpoint === 'oauth') return { question: UNSUPPORTED_GRANT, status: 400 }
  return { question: apiRequest(options.path, admitted?.accessToken ?? ''), status: admitted?.status ?? 200 }
}

function latencies(times: readonly number[]): Latencies {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { responses: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 }
}
