import { randomBytes } from 'node:crypto'
import process from 'node:process'
import { loadConfig } from '../src/config/load.ts'
import { createGate } from '../src/gate/admit.ts'
import type { RequestHead } from '../src/http/exchange.ts'
import { systemClock as clock } from '../src/http/system-clock.ts'
import { createWindowTable } from '../src/limits/window-table.ts'
import { deriveSettings } from '../src/settings.ts'
import { createMemoryJournal } from '../src/tokens/token-journal.ts'
import { createTokenStore } from '../src/tokens/token-store.ts'
import { formatTable } from './table.ts'

/** What one admission may cost (µs). */
const BUDGET = 2

const ROUNDS = 20
const ADMISSIONS = 20_000

/** As many clients, each with a token of its own, as come between two admissions of the same one. */
const CLIENTS = 1_000

const NO_LIMIT = 1_000_000_000
const FULL = 1

/**
 * `node bench/admission.ts`: what the gate costs per request (classify, identify, limit, authorize), measured on its
 * own in one process. Processor time, the collector's
 * included; the median of the rounds, of which the first ones find the code not yet compiled.
 */
async function main(): Promise<0 | 1> {
  const admitted = await measure(NO_LIMIT, true)
  const limited = await measure(FULL, true)
  const anonymous = await measure(NO_LIMIT, false)
  const rows = [
    ['admitted', admitted.toFixed(2)],
    ['refused: past the limit', limited.toFixed(2)],
    ['refused: no token', anonymous.toFixed(2)],
  ]
  process.stdout.write(`${formatTable(['request', 'µs'], rows)}\n\nallowed: ${BUDGET} µs\n`)
  return Math.max(admitted, limited, anonymous) <= BUDGET ? 0 : 1
}

/** The median cost (µs) of a request. */
async function measure(requests: number, withToken: boolean): Promise<number> {
  const config = loadConfig({
    env: {},
    sets: ['upstream.url=http://127.0.0.1:1', 'password.file=/dev/null', `limits.api.requests=${requests}`],
  })
  const { gate, clientOf } = await deriveSettings(config)
  const tokens = createTokenStore({
    policy: config.tokens,
    clock,
    random: randomBytes,
    journal: createMemoryJournal(),
    listener: { issued() {}, revoked() {}, evicted() {} },
  })
  const { maxKeys } = config.limits
  const admit = createGate({
    clock,
    tables: {
      api: createWindowTable(config.limits.api, { clock, maxKeys }),
      oauth: createWindowTable(config.limits.oauth, { clock, maxKeys }),
    },
    clientOf,
    identify: tokens.identify,
    settings: () => gate,
  })
  const heads = Array.from({ length: CLIENTS }, (_, i) =>
    headOf(i, withToken ? tokens.issue('client').accessToken : undefined),
  )

  const costs: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = process.cpuUsage()
    for (let i = 0; i < ADMISSIONS / CLIENTS; i += 1) for (const head of heads) admit(head)
    const { user, system } = process.cpuUsage(before)
    costs.push((user + system) / ADMISSIONS)
  }
  return costs.sort((a, b) => a - b)[ROUNDS / 2] ?? Number.NaN
}

/** What an ordinary client sends. */
function headOf(client: number, token: string | undefined): RequestHead {
  const shown = token === undefined ? [] : ['Authorization', `Bearer ${token}`]
  const fields = [
    'Host',
    'device.example',
    'Accept',
    'application/json',
    'User-Agent',
    'client/1.0',
    ...shown,
  ]
  return {
    version: '1.1',
    secure: false,
    method: 'GET',
    target: '/api/v1/status?verbose=1',
    authority: undefined,
    fields,
    peer: `10.0.${client >> 8}.${client & 255}`,
    localPort: 8080,
    upgrade: false,
    endsWithHead: false,
  }
}

process.exitCode = await main()
