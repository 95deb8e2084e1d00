import autocannon from 'autocannon'

/** A request as autocannon builds it. */
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
  readonly url: string
  /** Sent in turn on every connection. */
  readonly requests: readonly FloodRequest[]
  readonly connections: number
  /** Requests in flight per connection. */
  readonly pipelining: number
  /** Each connection sends this many requests, or as many as it can within a time (seconds). */
  readonly until: { readonly requestsEach: number } | { readonly seconds: number }
  /** Called for each response, with the index of its request. */
  readonly onResponse: (request: number, response: FloodResponse) => void
}

export interface FloodReport {
  /** Connection errors, timeouts and missing responses, as text. */
  readonly faults: readonly string[]
}

/** A request without a response after this time is an error (seconds). */
const TIMEOUT = 10

/**
 * Sends a flood with autocannon from this process, and passes on every response with all its fields.
 *
 * After the last request of a connection autocannon closes it at the next response: with pipelining it never reads the last
 * `pipelining - 1` responses. To observe every request that passes a limit, let each connection send at least the limit plus
 * `pipelining` requests: the unread responses are then refusals.
 */
export async function flood(plan: Flood): Promise<FloodReport> {
  const { connections, pipelining, until } = plan
  let responses = 0
  const requests = plan.requests.map((request, index) => ({
    ...request,
    onResponse(status: number, body: string, _context: object, headers: FloodResponse['headers'] = {}) {
      responses += 1
      plan.onResponse(index, { status, headers, body })
    },
  }))
  const result = await autocannon({
    url: plan.url,
    // The types of autocannon declare the parameters of `onResponse` more loosely than they are.
    requests: requests as autocannon.Request[],
    connections,
    pipelining,
    timeout: TIMEOUT,
    // Interval at which autocannon checks whether it is done (ms).
    sampleInt: 20,
    ...('seconds' in until ? { duration: until.seconds } : { amount: connections * until.requestsEach }),
  })

  const faults: string[] = []
  if (result.errors > 0)
    faults.push(`${result.errors} connections failed, ${result.timeouts} of them by timeout`)
  if ('requestsEach' in until) {
    const expected = connections * (until.requestsEach - pipelining + 1)
    if (responses !== expected) faults.push(`${responses} responses instead of ${expected}`)
  }
  return { faults }
}
