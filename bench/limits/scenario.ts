import { setTimeout as pause } from 'node:timers/promises'
import { textMember } from '../../src/verify/answer.ts'
import { flood } from '../../src/verify/flood.ts'
import { type Account, createLedger, type Ledger, type LedgerFault } from '../../src/verify/ledger.ts'
import type { Limit } from '../../src/verify/limit-faults.ts'
import { foldFields, type Observation, only, wholeNumber } from '../../src/verify/observation.ts'
import type { Endpoint } from '../../src/verify/verdict.ts'
import { type RunningSidecar, startSidecar } from '../sidecar.ts'
import { startCountingDevice } from './counting-device.ts'
import { type RequestKind, RIGHT_PASSWORD } from './request-kind.ts'

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
  readonly accounts: ReadonlyMap<Endpoint, Account>
  /** Number of requests that reached the device. */
  readonly deviceSaw: number
  readonly faults: readonly string[]
}

/** Runs one scenario against its own sidecar and device. */
export async function runScenario(scenario: Scenario, sets: readonly string[]): Promise<Report> {
  const device = await startCountingDevice()
  const sidecar = await startSidecar({
    device: device.url,
    tls: scenario.tls,
    limits: { api: policyOf(scenario.limits.api), oauth: policyOf(scenario.limits.oauth) },
    set: sets,
  })
  const ledgers = new Map<Endpoint, Ledger>()
  const faults: string[] = []
  let reached = 0
  const onPass = ({ reachesDevice }: RequestKind): void => {
    if (reachesDevice) reached += 1
  }
  await scenario.run(stageOf(scenario, sidecar, { ledgers, faults, onPass }))
  faults.push(...(await sidecar.stop()).map((line) => `the sidecar reported: ${line}`))

  const accounts = new Map([...ledgers].map(([endpoint, ledger]) => [endpoint, ledger.account()]))
  const { windows } = scenario
  for (const [endpoint, account] of accounts) {
    if ('atLeast' in windows && account.passed.length < windows.atLeast)
      faults.push(`${endpoint}: ${account.passed.length} windows instead of ${windows.atLeast}`)
    faults.push(...account.faults.map((fault) => `${endpoint}: ${describeFault(fault)}`))
  }
  if (device.expected !== reached)
    faults.push(`the device saw ${device.expected} requests, ${reached} passed`)
  if (device.unexpected.length > 0) {
    faults.push(
      `the device saw ${device.unexpected.length} unexpected requests, e.g. ${device.unexpected[0]}`,
    )
  }
  return { title: scenario.title, accounts, deviceSaw: device.expected + device.unexpected.length, faults }
}

/** Longer than a busy machine takes to open all connections of a flood (s). */
const TIMEOUT = 60

const ONE: Shape = { connections: 1, until: { requestsEach: 1 } }

function policyOf(limit: Limit): { requests: number; window: string } {
  return { requests: limit.requests, window: `${limit.window}s` }
}

function describeFault({ promise, text }: LedgerFault): string {
  return promise === undefined ? text : `${text} (${promise})`
}

interface Records {
  readonly ledgers: Map<Endpoint, Ledger>
  readonly faults: string[]
  /** Called for each request that passed. */
  readonly onPass: (kind: RequestKind) => void
}

function stageOf(
  { limits, windows }: Scenario,
  sidecar: RunningSidecar,
  { ledgers, faults, onPass }: Records,
): Stage {
  const lastRefusals = new Map<Endpoint, Observation>()
  /** Responses to our own logins: they count when `/oauth/token` is flooded too. */
  const grants: Observation[] = []

  function ledgerOf(endpoint: Endpoint): Ledger {
    const known = ledgers.get(endpoint)
    if (known !== undefined) return known
    const ledger = createLedger(limits[endpoint], 'exactly' in windows ? windows.exactly : undefined)
    ledgers.set(endpoint, ledger)
    if (endpoint === 'oauth') for (const grant of grants) ledger.add(RIGHT_PASSWORD, grant)
    return ledger
  }

  function record(kind: RequestKind, observation: Observation): void {
    if (observation.status === 429) lastRefusals.set(kind.endpoint, observation)
    if (observation.status === kind.status) onPass(kind)
    ledgerOf(kind.endpoint).add(kind, observation)
  }

  async function send(
    kinds: readonly RequestKind[],
    { connections, pipelining = 1, until }: Shape,
    onResponseOf: (kind: RequestKind, observation: Observation) => void,
  ): Promise<void> {
    const report = await flood({
      url: sidecar.url,
      tls: { rejectUnauthorized: false }, // the certificate is made at the start
      requests: kinds.map(({ request }) => request),
      connections,
      pipelining,
      until,
      timeout: TIMEOUT,
      onResponse(index, { status, headers, body }) {
        const kind = kinds[index]
        if (kind !== undefined)
          onResponseOf(kind, { status, fields: foldFields(headers), body, at: Date.now() })
      },
    })
    faults.push(...report.faults)
  }

  return {
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
  }
}
