import { openSync } from 'node:fs'
import process from 'node:process'
import { setImmediate } from 'node:timers/promises'
import { createBreaker } from '../../src/device/breaker.ts'
import { uploadPace } from '../../src/forward/pace.ts'
import { createUpstream } from '../../src/forward/upstream.ts'
import { createLiveExchanges } from '../../src/gate/live-exchanges.ts'
import { createPassage } from '../../src/gate/passage.ts'
import type { Exchange, Outcome, RequestHead } from '../../src/http/exchange.ts'
import { LIMIT_FIELD_NAMES } from '../../src/limits/limit-fields.ts'
import { createAccessLog } from '../../src/record/access-log.ts'
import { createLog } from '../../src/record/log.ts'
import { createMetrics } from '../../src/record/metrics.ts'
import { createRecentRequests } from '../../src/record/recent-requests.ts'
import { createBoundedQueue } from '../../src/system/bounded-queue.ts'
import { systemClock } from '../../src/system/clock.ts'
import { summarize } from '../measure.ts'
import { openGate } from './gate.ts'

/**
 * `node middle-program.ts MS forward|refuse`: measures for MS milliseconds and prints the processor time of one request (µs)
 * without reading and writing HTTP. Requests come in batches of `IN_FLIGHT`.
 */

const IN_FLIGHT = 64
const clock = systemClock
const [, , duration = '1000', kind = 'forward'] = process.argv
const gate = openGate(kind === 'refuse' ? 0 : 1_000_000_000)
const metrics = createMetrics({ version: '0', node: '0' })
const log = await createLog(
  { level: 'info', format: 'json' },
  { terminal: false, fd: openSync('/dev/null', 'w') },
)
const accessLog = createAccessLog(log, clock)
const requests = createRecentRequests(clock)
const requestSettings = { host: undefined, added: [] }
const responseSettings = { origin: 'http://127.0.0.1:8080', host: undefined, replaced: LIMIT_FIELD_NAMES }

function unexpected(error: unknown): never {
  throw error
}

/** The fields of a response of nginx. */
const RESPONSE_FIELDS = [
  'Server',
  'nginx',
  'Date',
  'Sat, 21 Nov 2026 03:00:00 GMT',
  'Content-Type',
  'application/json',
  'Content-Length',
  '27',
  'Connection',
  'keep-alive',
]

const HEAD = { status: 200, reason: 'OK', fields: RESPONSE_FIELDS, remembered: false }

/** Each function completes a request that is at the device. */
let atDevice: (() => void)[] = []

const queue = createBoundedQueue({ inside: IN_FLIGHT, waiting: 0, maxWait: 1_000 })

const passage = createPassage({
  admit: gate.admit,
  ownEndpoints: { token: unexpected, revocation: unexpected },
  upstream: createUpstream({
    route: '',
    roundTrip: (request) => {
      atDevice.push(() => {
        const { exchange, fields, limitFields } = request
        if (fields.length === 0) unexpected(fields)
        exchange.begin({ status: 200, reason: 'OK', ...request.project(HEAD), limitFields })
        request.onHead()
        exchange.end()
        request.onEnd({ kind: 'relayed' })
      })
    },
    upgrades: { open: unexpected },
    queue,
    pace: uploadPace(1024, 1_000, queue),
    uploadTimeout: () => 1_000,
    maxTunnels: 1,
    buffering: undefined,
    breaker: createBreaker(clock),
    signIn: undefined,
    request: () => requestSettings,
    response: () => responseSettings,
    clock,
    events: metrics.upstream(undefined),
  }),
  live: createLiveExchanges(),
  clock,
  refusalSettings: () => ({ statusCodes: 'contract', realm: 'device' }),
  onBug: unexpected,
  record(entry) {
    metrics.exchange(entry)
    requests.add(entry)
    accessLog.write(entry)
  },
  onUnrecordedRefusal: unexpected,
})

/** An exchange without a connection: records the status. */
class RecordedExchange implements Exchange {
  readonly head: RequestHead
  readonly unread = false
  readonly broken = false
  readonly arrived: number = Number.POSITIVE_INFINITY
  status = 0
  ended = false
  readonly #listeners: ((outcome: Outcome) => void)[] = []

  constructor(head: RequestHead) {
    this.head = head
  }

  get answered(): boolean {
    return this.status !== 0
  }

  body(): never {
    return unexpected('no request has a body')
  }

  arrival(): never {
    return unexpected('no request has a body')
  }

  reply({ status }: { readonly status: number }): void {
    this.status = status
    this.end()
  }

  inform(): void {}

  begin({ status }: { readonly status: number }): void {
    this.status = status
  }

  write(): boolean {
    return true
  }

  end(): void {
    this.ended = true
    const outcome: Outcome = { status: this.status, end: 'complete', requestBytes: 0, responseBytes: 27 }
    for (const listener of this.#listeners) listener(outcome)
  }

  cut(): void {}

  onDrain(): void {}

  onBroken(): void {}

  contestedWhile(): void {}

  onEnd(listener: (outcome: Outcome) => void): void {
    this.#listeners.push(listener)
  }
}

/** The fields of a browser over HTTP/1.1. */
const heads = gate.heads(1_024, (token) => [
  'Host',
  'device.local:8443',
  'User-Agent',
  'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'Accept',
  'application/json, text/plain, */*',
  'Accept-Encoding',
  'gzip, deflate, br, zstd',
  'Connection',
  'keep-alive',
  'Authorization',
  `Bearer ${token}`,
])
const expected = kind === 'refuse' ? 429 : 200

async function serveAll(): Promise<void> {
  for (let first = 0; first < heads.length; first += IN_FLIGHT) {
    const exchanges = heads.slice(first, first + IN_FLIGHT).map((head) => new RecordedExchange(head))
    for (const exchange of exchanges) passage.request(exchange)
    const pending = atDevice
    atDevice = []
    for (const respond of pending) respond()
    await setImmediate()
    for (const { status } of exchanges) if (status !== expected) unexpected(new Error(`status ${status}`))
  }
}

/**
 * Loops for `duration` ms. Returns the processor time per request (µs), including the threads of the garbage collector: the
 * median of the rounds, because other processes make single rounds more expensive.
 */
async function run(duration: number): Promise<number | undefined> {
  const rounds: number[] = []
  const end = performance.now() + duration
  while (performance.now() < end) {
    const before = process.cpuUsage()
    await serveAll()
    const { user, system } = process.cpuUsage(before)
    rounds.push((user + system) / heads.length)
  }
  return summarize(rounds)?.median
}

await run(Math.min(1_000, Number(duration)))
process.stdout.write(String(await run(Number(duration))))
accessLog.close()
