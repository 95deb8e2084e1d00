import autocannon from 'autocannon'

/** A request as autocannon builds it. */
export interface FloodRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** What came back for one request; a field that came more than once has an array. */
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
  /** Requests under way on one connection at once. */
  readonly pipelining: number
  /** How much each connection sends: a number of requests, or whatever it can in a time (seconds). */
  readonly until: { readonly requestsEach: number } | { readonly seconds: number }
  /** Called for every single response, with the index of its request. */
  readonly onResponse: (request: number, response: FloodResponse) => void
}

export interface FloodReport {
  /** What broke, in words: connection errors, timeouts, responses that never came. */
  readonly faults: readonly string[]
}

/** A request without an answer for this long is an error (seconds). */
const TIMEOUT = 10

/**
 * Sends a flood with autocannon from this process and hands over every response with all its fields.
 *
 * When a connection has sent what it shall, autocannon closes it at the next response, so with pipelining the last
 * `pipelining - 1` answers of each connection are never read. Whoever counts on seeing every request that passes a
 * limit lets each connection send at least the limit plus `pipelining`: then those last ones are past it.
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
    // The types have every request's body as `string | Buffer | undefined`, and forget that `onResponse` may be typed closer.
    requests: requests as autocannon.Request[],
    connections,
    pipelining,
    timeout: TIMEOUT,
    // How often (ms) autocannon looks whether it is done.
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
