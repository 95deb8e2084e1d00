import { setTimeout as pause } from 'node:timers/promises'
import autocannon from 'autocannon'
import type { Endpoint } from '../../src/http/admission.ts'
import { createLedger, type Ledger, type LedgerResult } from '../../src/verify/ledger.ts'
import { foldFields, type Observation, only, textMember, wholeNumber } from '../../src/verify/question.ts'
import type { Limit } from '../../src/verify/stated-limits.ts'
import { type Device, startDevice } from '../../test/support/device.ts'
import { DEVICE_BODY } from '../device.ts'
import { atEnd } from '../run-program.ts'
import { startSidecar } from '../sidecar.ts'
import { DEVICE_PATH, faultsOf, type RequestKind, RIGHT_PASSWORD } from './request-kind.ts'

export interface Scenario {
  readonly title: string
  readonly tls: boolean
  readonly limits: Readonly<Record<Endpoint, Limit>>
  /** Number of windows that the floods of each endpoint type must span. A busy machine spreads a long flood over more. */
  readonly windows: { readonly exactly: number } | { readonly atLeast: number }
  run(stage: Stage): Promise<void>
}

/** One sidecar in front of one device, and the ways to load it. */
export interface Stage {
  /** Logs in, which uses one request of the `/oauth/token` window. Resolves with the access token. */
  token(): Promise<string>
  /** Sends requests of these kinds in turn. */
  flood(kinds: readonly RequestKind[], shape: Shape): Promise<void>
  /** Waits for the Retry-After of the last 429, then sends one request of this kind, which must pass. */
  waitAndAsk(kind: RequestKind): Promise<void>
}

export interface Shape {
  readonly connections: number
  readonly pipelining?: number
  readonly until: { readonly requestsEach: number } | { readonly seconds: number }
}

export interface Report {
  readonly title: string
  readonly accounts: ReadonlyMap<Endpoint, LedgerResult>
  /** Number of requests that reached the device. */
  readonly deviceSaw: number
  readonly faults: readonly string[]
}

const ONE: Shape = { connections: 1, until: { requestsEach: 1 } }

/** Runs one scenario against its own sidecar and device. */
export async function runScenario(scenario: Scenario, sets: readonly string[]): Promise<Report> {
  const { limits, windows } = scenario
  const device = await startLyingDevice()
  const policy = ({ requests, window }: Limit) => ({ requests, window: `${window}s` })
  const sidecar = await startSidecar({
    device: device.url,
    tls: scenario.tls,
    limits: { api: policy(limits.api), oauth: policy(limits.oauth) },
    set: sets,
  })
  const ledgers = new Map<Endpoint, Ledger>()
  const lastRefusals = new Map<Endpoint, Observation>()
  /** Responses to our own logins: they count when `/oauth/token` is flooded too. */
  const grants: Observation[] = []
  const faults: string[] = []
  let reached = 0

  const add = (ledger: Ledger, kind: RequestKind, observation: Observation): void =>
    ledger.add(kind.status, observation, faultsOf(kind, observation, limits[kind.endpoint]))
  const record = (kind: RequestKind, observation: Observation): void => {
    const { endpoint } = kind
    if (observation.status === 429) lastRefusals.set(endpoint, observation)
    if (observation.status === kind.status && kind.reachesDevice) reached += 1
    let ledger = ledgers.get(endpoint)
    if (ledger === undefined) {
      ledger = createLedger(limits[endpoint], 'exactly' in windows ? windows.exactly : undefined)
      if (endpoint === 'oauth') for (const grant of grants) add(ledger, RIGHT_PASSWORD, grant)
      ledgers.set(endpoint, ledger)
    }
    add(ledger, kind, observation)
  }
  const send = async (kinds: readonly RequestKind[], shape: Shape, onResponse: OnResponse): Promise<void> => {
    faults.push(...(await flood(sidecar.url, kinds, shape, onResponse)))
  }
  await scenario.run({
    async token() {
      await send([RIGHT_PASSWORD], ONE, (_kind, observation) => grants.push(observation))
      const grant = grants.at(-1)
      const token = grant && textMember(grant, 'access_token')
      if (token === undefined) throw new Error('the sidecar issued no token')
      return token
    },
    flood: (kinds, shape) => send(kinds, shape, record),
    async waitAndAsk(kind) {
      const lastRefusal = lastRefusals.get(kind.endpoint)
      const wait = lastRefusal && wholeNumber(only(lastRefusal, 'retry-after'))
      if (lastRefusal === undefined || wait === undefined)
        throw new Error('no 429 with Retry-After to wait for')
      await pause(Math.max(0, lastRefusal.at + wait * 1000 - Date.now()))
      await send([kind], ONE, (_kind, observation) => {
        if (observation.status === 429) faults.push(`${kind.name}: 429 although Retry-After was waited for`)
        record(kind, observation)
      })
    },
  })
  faults.push(...(await sidecar.stop()).map((line) => `the sidecar reported: ${line}`))

  const accounts = new Map([...ledgers].map(([endpoint, ledger]) => [endpoint, ledger.account()]))
  for (const [endpoint, account] of accounts) {
    if ('atLeast' in windows && account.passed.length < windows.atLeast)
      faults.push(`${endpoint}: ${account.passed.length} windows instead of ${windows.atLeast}`)
    for (const { promise, text } of account.faults)
      faults.push(`${endpoint}: ${text}${promise === undefined ? '' : ` (${promise})`}`)
  }
  const { length: deviceSaw } = device.requests
  if (deviceSaw !== reached) faults.push(`the device saw ${deviceSaw} requests, ${reached} passed`)
  for (const { method, target, header } of device.requests) {
    if (method !== 'GET' || target !== DEVICE_PATH || header('authorization') !== undefined)
      faults.push(`the device saw an unexpected request: ${method} ${target}`)
  }
  return { title: scenario.title, accounts, deviceSaw, faults }
}

/** A device that sends rate-limit fields with wrong values, which must never reach a client. */
async function startLyingDevice(): Promise<Device> {
  const device = await startDevice((_request, response) => {
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': DEVICE_BODY.length,
      'X-RateLimit-Limit': '1000000',
      'X-RateLimit-Remaining': '999999',
      'X-RateLimit-Reset': '1',
    })
    response.end(DEVICE_BODY)
  })
  atEnd(device.stop)
  return device
}

type OnResponse = (kind: RequestKind, observation: Observation) => void

/** Longer than a busy machine takes to open all connections of a flood (s). */
const TIMEOUT = 60

/**
 * Sends a flood with autocannon from this process, and passes on every response. Resolves with what went wrong.
 *
 * After the last request of a connection autocannon closes it at the next response: with pipelining it never reads the last
 * `pipelining - 1` responses. To observe every request that passes a limit, let each connection send at least the limit plus
 * `pipelining` requests: the unread responses are then refusals.
 */
async function flood(
  url: string,
  kinds: readonly RequestKind[],
  { connections, pipelining = 1, until }: Shape,
  onResponse: OnResponse,
): Promise<string[]> {
  let received = 0
  const result = await autocannon({
    // autocannon accepts any certificate: the sidecar makes its own.
    url,
    connections,
    pipelining,
    timeout: TIMEOUT,
    // How often autocannon looks whether it is done (ms): late, a flood would run into the next window.
    sampleInt: 20,
    requests: kinds.map((kind) => ({
      ...kind.request,
      onResponse(status, body, _context, headers = {}) {
        received += 1
        onResponse(kind, { status, fields: foldFields(headers), body, at: Date.now() })
      },
    })),
    ...('seconds' in until ? { duration: until.seconds } : { amount: connections * until.requestsEach }),
  })
  const { errors, timeouts, resets, requests } = result
  const unread = connections * ('seconds' in until ? pipelining : pipelining - 1)
  const lost = requests.sent - received - unread
  return [
    ...(errors > timeouts ? [`${errors - timeouts} connections failed`] : []),
    ...(timeouts > 0 ? [`${timeouts} requests timed out`] : []),
    ...(resets > 0 ? [`the sidecar closed ${resets} connections`] : []),
    ...(lost > 0 ? [`${lost} requests got no response`] : []),
  ]
}
