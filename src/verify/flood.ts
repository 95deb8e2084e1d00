import autocannon from 'autocannon'
import { type Clock, systemClock } from '../system/clock.ts'
import { type Relay, startRelay, type Trust } from './relay.ts'
import { type ClientCount, createRequestCount, type RequestTotals } from './request-count.ts'
import { hostOf, portOf } from './target.ts'

/** A request as autocannon builds it. It adds `Host`, `Connection: keep-alive` and `Content-Length`. */
export interface FloodRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** A list is sent as one field, with commas. */
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string
}

/** The response to one request. A repeated field has an array. */
export interface FloodResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: string
  /** From the request to the end of the response (ms, not rounded). */
  readonly time: number
}

export interface Flood {
  /** `http:` or `https:`, and the host. A path is ignored. */
  readonly url: string
  /** For `https:`. No request is sent before the certificate is verified. */
  readonly tls?: Trust
  /** Sent in turn on every connection. */
  readonly requests: readonly FloodRequest[]
  readonly connections: number
  /** Requests in flight per connection. */
  readonly pipelining: number
  /** Each connection sends this many requests, or as many as it can within a time (seconds). */
  readonly until: { readonly requestsEach: number } | { readonly seconds: number }
  /** A request without a response after this time is lost (seconds, at least 1). Default: 10. */
  readonly timeout?: number
  /** Ends the flood early; the report then counts what there was. */
  readonly signal?: AbortSignal
  /** Called for each response, with the index of its request. If it throws, the flood ends and rejects with its error. */
  readonly onResponse: (request: number, response: FloodResponse) => void
}

export interface FloodReport extends RequestTotals {
  /** Connections that were refused or reset, or whose certificate is not trusted. */
  readonly failedConnections: number
  /** Requests that had no response within the timeout. They are among the lost ones. */
  readonly timeouts: number
  /** The flood ended early, because too many requests were lost in a row. */
  readonly gaveUp: boolean
  /** Seconds. */
  readonly took: number
  /** What went wrong, as text: every request that was lost, and why. Empty if all is well. */
  readonly faults: readonly string[]
}

const DEFAULT_TIMEOUT = 10

/** autocannon opens a connection again at once: without a bound it would hammer at a server that refuses it. */
const MAX_LOST_IN_A_ROW = 1_000

/**
 * Sends a flood with autocannon from this process, and passes on every response with all its fields. Rejects if autocannon cannot
 * build a request. A server that fails is no reason to reject: the report says so.
 *
 * After the last request of a connection autocannon closes it at the next response: with pipelining it never reads the last
 * `pipelining - 1` responses. To observe every request that passes a limit, let each connection send at least the limit plus
 * `pipelining` requests: the unread responses are then refusals.
 */
export async function flood(plan: Flood, { monotonic }: Clock = systemClock): Promise<FloodReport> {
  const { connections, pipelining, until, timeout = DEFAULT_TIMEOUT } = plan
  const count = createRequestCount(pipelining, plan.requests.length, monotonic)
  const reasons = new Set<string>()
  let interim = 0
  let gaveUp = false
  let stopped = false
  let thrown: { readonly error: unknown } | undefined
  let running: autocannon.Instance | undefined
  function stop(): void {
    stopped = true
    running?.stop()
  }
  const { origin, host, relay } = await reach(plan, reasons)

  function setupClient(client: NodeJS.EventEmitter): void {
    const ours = count.client()
    client.on('request', () => {
      ours.sent()
      if (count.lostInARow() <= MAX_LOST_IN_A_ROW) return
      gaveUp = true
      stop()
    })
    client.on('response', (status: number, _bytes: number, theirTime: number) => {
      if (status < 200) interim += 1
      else receive(ours, theirTime)
    })
  }

  /** autocannon passes on a response in two calls, one right after the other. The first one stores it here. */
  let arrived: Omit<FloodResponse, 'time'> & { readonly request: number }
  function receive(client: ClientCount, theirTime: number): void {
    const { request, ...response } = arrived
    const answered = client.answered(closes(response)) ?? { request, time: theirTime }
    if (thrown !== undefined) return
    try {
      plan.onResponse(answered.request, { ...response, time: answered.time })
    } catch (error) {
      // Thrown from here it would end the process.
      thrown = { error }
      stop()
    }
  }

  const options: autocannon.Options = {
    url: origin,
    requests: plan.requests.map((each, request) => ({
      ...each,
      headers: { Host: host, ...each.headers },
      onResponse(status, body, _context, headers = {}) {
        arrived = { request, status, headers, body }
      },
    })),
    connections,
    pipelining,
    timeout,
    // Interval at which autocannon checks whether it is done (ms).
    sampleInt: 20,
    setupClient,
    // The histograms are left out of the executable (`deploy/build/slim-packages.ts`).
    skipAggregateResult: true,
    ...('seconds' in until ? { duration: until.seconds } : { amount: connections * until.requestsEach }),
  }
  try {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    // The types know only the result with histograms.
    const done = (error: unknown, result: unknown) => (error ? reject(error) : resolve(result as Outcome))
    running = autocannon(options, done)
    plan.signal?.addEventListener('abort', stop)
    if (plan.signal?.aborted === true) stop()
    if (relay === undefined) running.on('reqError', ({ message }: Error) => reasons.add(message))
    const { errors, timeouts, duration, totalRequests } = await promise
    if (thrown !== undefined) throw thrown.error
    const totals = count.totals('seconds' in until || stopped ? pipelining : pipelining - 1)
    if (totalRequests !== totals.sent) throw new Error('autocannon counts other requests than it announces')
    const figures = {
      ...totals,
      failedConnections: errors - timeouts,
      timeouts,
      gaveUp,
      took: duration,
    }
    return { ...figures, faults: faultsOf(figures, interim, reasons) }
  } finally {
    plan.signal?.removeEventListener('abort', stop)
    await relay?.close()
  }
}

/** A result of autocannon with `skipAggregateResult`. */
interface Outcome {
  readonly totalRequests: number
  /** Failed connections and timeouts. */
  readonly errors: number
  readonly timeouts: number
  /** Seconds. */
  readonly duration: number
}

/** Where autocannon connects to, and the relay if there is one. A failure of the relay adds its reason to `reasons`. */
async function reach({ url, tls = {} }: Flood, reasons: Set<string>): Promise<Way> {
  const place = new URL(url)
  const { origin, host } = place
  if (place.protocol === 'http:') return { origin, host, relay: undefined }
  const relay = await startRelay({
    host: hostOf(place),
    port: portOf(place),
    tls,
    onFailure: ({ message }) => reasons.add(message),
  })
  return { origin: `http://127.0.0.1:${relay.port}`, host, relay }
}

interface Way {
  readonly origin: string
  /** The value of `Host`. */
  readonly host: string
  readonly relay: Relay | undefined
}

/** Whether the server closes the connection behind this response. */
function closes({ headers }: Pick<FloodResponse, 'headers'>): boolean {
  return Object.entries(headers).some(
    ([name, value]) =>
      name.toLowerCase() === 'connection' && /(?:^|[\s,])close(?:$|[\s,])/i.test(String(value)),
  )
}

/** The texts of `FloodReport.faults`. `interim`: the number of 1xx responses. */
function faultsOf(
  { failedConnections, timeouts, lost, gaveUp }: Omit<FloodReport, 'faults'>,
  interim: number,
  reasons: ReadonlySet<string>,
): string[] {
  const because = reasons.size === 0 ? '' : ` (${[...reasons].slice(0, 3).join('; ')})`
  const faults: string[] = []
  if (failedConnections > 0) faults.push(`${failedConnections} connections failed${because}`)
  if (timeouts > 0) faults.push(`${timeouts} requests timed out`)
  if (lost > 0) faults.push(`${lost} requests got no response`)
  if (gaveUp) faults.push(`the flood ended early: ${MAX_LOST_IN_A_ROW} requests in a row got no response`)
  if (interim > 0) faults.push(`${interim} responses were 1xx, which autocannon counts as final ones`)
  return faults
}
