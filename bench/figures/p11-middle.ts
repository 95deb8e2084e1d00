import { openSync } from 'node:fs'
import process from 'node:process'
import { setImmediate } from 'node:timers/promises'
import { createBreaker } from '../../src/device/breaker.ts'
import type { Connection } from '../../src/device/connections.ts'
import { downloadPace, uploadPace } from '../../src/forward/pace.ts'
import { createUpstream } from '../../src/forward/upstream.ts'
import { createLiveExchanges } from '../../src/gate/live-exchanges.ts'
import { createPassage } from '../../src/gate/passage.ts'
import { LIMIT_FIELD_NAMES } from '../../src/http/limit-fields.ts'
import { createAccessLog } from '../../src/record/access-log.ts'
import { createLog } from '../../src/record/log.ts'
import { createMetrics } from '../../src/record/metrics.ts'
import { createRecentRequests } from '../../src/record/recent-requests.ts'
import { createBoundedQueue } from '../../src/system/bounded-queue.ts'
import { systemClock as clock } from '../../src/system/clock.ts'
import { runIfMain } from '../child.ts'
import { BareExchange } from '../floor/bare-exchange.ts'
import type { Figure } from '../lab.ts'
import { checkOf, medianOf } from '../measure.ts'
import { type CostPlan, programCost } from './p10-admission.ts'
import { type BenchGate, openGate } from './parts.ts'

/** Requests at a time. */
const IN_FLIGHT = 64

export const middle: Figure = {
  id: 'P11',
  title: 'Cost of one request between the connections',
  about: `Processor time of a request without reading and writing HTTP, in a loop: the gate, the header policy in both directions, the queue for the device, metrics and the log (to /dev/null). ${IN_FLIGHT} requests run at a time, and a thousand tokens take turns. The second number is the cost of a refusal past the limit.`,
  async measure(lab) {
    const forwarded = await programCost(lab, import.meta.url, 'forward')
    const refused = await programCost(lab, import.meta.url, 'refuse')
    return {
      checks: [
        checkOf('P11 forwarded', 'one forwarded request', 'µs', forwarded),
        checkOf('P11 refused', 'one refusal (429)', 'µs', refused),
      ],
    }
  },
}

function unexpected(error: unknown): never {
  throw error
}

/** The head of a response of nginx. */
const HEAD = {
  status: 200,
  reason: 'OK',
  fields: [
    ...['Server', 'nginx', 'Date', 'Sat, 21 Nov 2026 03:00:00 GMT', 'Content-Type', 'application/json'],
    ...['Content-Length', '27', 'Connection', 'keep-alive'],
  ],
  remembered: false,
}

/** The fields of a browser over HTTP/1.1. */
const fieldsWith = (token: string): readonly string[] => [
  ...['Host', 'device.local:8443'],
  ...['User-Agent', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'],
  ...['Accept', 'application/json, text/plain, */*', 'Accept-Encoding', 'gzip, deflate, br, zstd'],
  ...['Connection', 'keep-alive', 'Authorization', `Bearer ${token}`],
]

/** Everything between the connections. `atDevice` gets functions that complete the requests at the device. */
async function openPassage(
  gate: BenchGate,
  atDevice: (() => void)[],
): Promise<ReturnType<typeof createPassage>> {
  const metrics = createMetrics({ version: '0', node: '0' })
  const log = await createLog(
    { level: 'info', format: 'json' },
    { terminal: false, fd: openSync('/dev/null', 'w') },
  )
  const accessLog = createAccessLog(log, clock)
  const requests = createRecentRequests(clock)
  const queue = createBoundedQueue({ inside: IN_FLIGHT, waiting: 0, maxWait: 1_000 })
  const pace = uploadPace(1024, 1_000, queue)
  const connection: Connection = {
    reused: true,
    uploaded: undefined,
    send(request, handler) {
      if (request.fields.length === 0 && request.lines === undefined) unexpected(request)
      atDevice.push(() => {
        handler.head(HEAD)
        handler.end()
      })
    },
    release() {},
    pause() {},
    resume() {},
    abort() {},
  }
  const responseSettings = { origin: 'http://127.0.0.1:8080', host: undefined, replaced: LIMIT_FIELD_NAMES }
  return createPassage({
    admit: gate.admit,
    ownEndpoints: { token: unexpected, revocation: unexpected },
    upstream: createUpstream({
      route: '',
      connections: {
        borrow: () => connection,
        tolerant: false,
        close: async () => unexpected(new Error('closed')),
      },
      paces: { upload: pace, download: downloadPace(1_000, 1_000, queue) },
      fields: { request: { host: undefined, added: [] }, response: responseSettings },
      idleTimeout: 1_000,
      queue,
      pace,
      uploadTimeout: () => 1_000,
      maxTunnels: 1,
      buffering: undefined,
      breaker: createBreaker(clock),
      signIn: undefined,
      clock,
      events: metrics.upstream(undefined),
    }),
    live: createLiveExchanges(),
    clock,
    settings: { config: { statusCodes: 'contract', realm: 'device' } },
    onBug: unexpected,
    record(entry) {
      metrics.exchange(entry)
      requests.add(entry)
      accessLog.write(entry)
    },
    onUnrecordedRefusal: unexpected,
  })
}

/**
 * Processor time per request (µs), including the threads of the garbage collector: the median of the rounds, because other
 * processes make single rounds more expensive.
 */
async function measureMiddle({ duration, kind }: CostPlan): Promise<number | undefined> {
  const gate = openGate(kind === 'refuse' ? 0 : 1_000_000_000)
  const expected = kind === 'refuse' ? 429 : 200
  const atDevice: (() => void)[] = []
  const passage = await openPassage(gate, atDevice)
  const heads = gate.heads(1_024, fieldsWith)
  const serveAll = async (): Promise<void> => {
    for (let first = 0; first < heads.length; first += IN_FLIGHT) {
      const exchanges = heads.slice(first, first + IN_FLIGHT).map((head) => new BareExchange({ ...head }))
      for (const exchange of exchanges) passage.request(exchange)
      for (const respond of atDevice.splice(0)) respond()
      await setImmediate()
      for (const { status } of exchanges) if (status !== expected) unexpected(new Error(`status ${status}`))
    }
  }
  const run = async (milliseconds: number): Promise<number | undefined> => {
    const rounds: number[] = []
    const end = performance.now() + milliseconds
    while (performance.now() < end) {
      const before = process.cpuUsage()
      await serveAll()
      const { user, system } = process.cpuUsage(before)
      rounds.push((user + system) / heads.length)
    }
    return medianOf(rounds)
  }
  await run(Math.min(1_000, duration))
  return run(duration)
}

await runIfMain(import.meta, measureMiddle)
