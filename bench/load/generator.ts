/** A load: keep-alive connections that send the same request again after each response. */
export interface Load {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  readonly until: { readonly seconds: number } | { readonly requests: number }
  /** Every response must equal this. */
  readonly expected: ExpectedResponse
  readonly core: number | undefined
  /** Runs only when no other process on its core is ready to. */
  readonly idlePriority?: boolean
}

export interface ExpectedResponse {
  readonly status: number
  readonly body: string
  /** Size of the head (bytes). It hardly varies: a generator that checks no bodies notices other responses by their size. */
  readonly headBytes: number
}

export interface LoadResult {
  readonly requests: number
  readonly requestsPerSecond: number
  /** Milliseconds; NaN if the generator does not report them. */
  readonly p50: number
  readonly p90: number
  readonly p99: number
  /** Responses per status, if the generator reports them. */
  readonly statuses?: Readonly<Record<number, number>>
  /** Responses with another status or body, and errors. */
  readonly failed: number
}

export interface Generator {
  readonly name: string
  /** Undefined if it is not installed. */
  version(): Promise<string | undefined>
  run(load: Load): Promise<LoadResult>
}

/** Responses to the same request may differ by this many bytes: digits of a counter. */
const HEAD_SLACK = 8

/** Whether all responses can have been the expected one, with up to one partial response per connection at the end. */
export function rightSize(
  { requests, bytes }: { readonly requests: number; readonly bytes: number },
  { body, headBytes }: ExpectedResponse,
  connections: number,
): boolean {
  const size = headBytes + Buffer.byteLength(body)
  const excess = bytes - requests * size
  const slack = requests * HEAD_SLACK
  return excess >= -slack && excess <= slack + connections * size
}

/** Time after which a load is killed (ms). */
export function timeoutFor({ until }: Load): number {
  return 'seconds' in until ? (until.seconds + 20) * 1000 : 30_000 + until.requests
}
