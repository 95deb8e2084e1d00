import autocannon from 'autocannon'
import { PATIENCE } from './running-test.ts'

/** A request as autocannon builds it. It adds `Host`, `Connection: keep-alive` and `Content-Length`. */
export interface FloodRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** The response to one request. A repeated field has an array. */
interface FloodResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: string
}

export interface Flood {
  /** `http:` or `https:`, and the host. Any certificate is accepted. */
  readonly url: string
  /** Sent in turn on every connection. */
  readonly requests: readonly FloodRequest[]
  readonly connections: number
  /** Requests in flight per connection. */
  readonly pipelining: number
  /** Each connection sends this many requests, or as many as it can within a time (seconds). */
  readonly until: { readonly requestsEach: number } | { readonly seconds: number }
  /** A request without a response after this time is lost (seconds, at least 1). Default: 10. */
  readonly timeout?: number
  /** Called for each response, with the index of its request. If it throws, the flood ends and rejects with its error. */
  readonly onResponse: (request: number, response: FloodResponse) => void
}

interface FloodReport {
  readonly responses: number
  /** What went wrong, as text. Empty if all is well. */
  readonly faults: readonly string[]
}

/**
 * Sends a flood with autocannon from this process, and passes on every response with all its fields. A server that fails is no reason
 * to reject: the report says so.
 *
 * After the last request of a connection autocannon closes it at the next response: with pipelining it never reads the last
 * `pipelining - 1` responses. To observe every request that passes a limit, let each connection send at least the limit plus
 * `pipelining` requests: the unread responses are then refusals.
 */
export async function flood(plan: Flood): Promise<FloodReport> {
  const { url, connections, pipelining, until, timeout = PATIENCE / 1000 } = plan
  const { promise, resolve, reject } = Promise.withResolvers<autocannon.Result>()
  let responses = 0
  const requests = plan.requests.map(
    (each, index): autocannon.Request => ({
      ...each,
      onResponse(status, body, _context, headers = {}) {
        responses += 1
        try {
          plan.onResponse(index, { status, headers, body })
        } catch (error) {
          reject(error)
          running.stop()
        }
      },
    }),
  )
  const length =
    'seconds' in until ? { duration: until.seconds } : { amount: connections * until.requestsEach }
  const running = autocannon(
    { url, requests, connections, pipelining, timeout, sampleInt: 20, ...length },
    (error: Error | null, result: autocannon.Result) => (error === null ? resolve(result) : reject(error)),
  )
  const { errors, timeouts, requests: sent } = await promise
  const unread = connections * ('seconds' in until ? pipelining : pipelining - 1)
  const lost = sent.sent - responses - unread
  const faults = {
    'connections failed': errors - timeouts,
    'requests timed out': timeouts,
    'requests got no response': lost,
  }
  return {
    responses,
    faults: Object.entries(faults).flatMap(([what, times]) => (times > 0 ? [`${times} ${what}`] : [])),
  }
}
