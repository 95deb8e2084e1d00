/** A load: keep-alive connections that send the same request as fast as answers come. */
export interface Load {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  readonly until: { readonly seconds: number } | { readonly requests: number }
  /** What every answer must be. */
  readonly expected: ExpectedAnswer
  readonly core: number | undefined
  /** Gives way to all else on its core. */
  readonly humble?: boolean
  /** autocannon only: POST bodies of so many bytes instead of GET. */
  readonly upload?: number | undefined
  /** wrk only: arguments of `many.lua`, which makes requests that differ. */
  readonly many?: readonly string[]
}

export interface ExpectedAnswer {
  readonly status: number
  readonly body: string
  /** Bytes of the head, which hardly differ from answer to answer: how a generator that reads no bodies notices others. */
  readonly headBytes: number
}

export interface LoadResult {
  readonly requests: number
  readonly requestsPerSecond: number
  /** Milliseconds; undefined where the generator does not tell. */
  readonly p50: number | undefined
  readonly p90: number | undefined
  readonly p99: number | undefined
  /** How many answers had each status, as far as the generator tells. */
  readonly statuses: ReadonlyMap<number, number>
  /** Answers of another status or with another body, and errors. */
  readonly failed: number
}

export interface Generator {
  readonly name: string
  /** Undefined where it is not installed. */
  version(): Promise<string | undefined>
  run(load: Load): Promise<LoadResult>
}

/** Bytes by which answers to the same request may differ: digits of a counter. */
const HEAD_SLACK = 8

/** Whether so many answers can all have been the expected one, when on each connection one was cut off at the end. */
export function rightSize(
  { requests, bytes }: { readonly requests: number; readonly bytes: number },
  { body, headBytes }: ExpectedAnswer,
  connections: number,
): boolean {
  const size = headBytes + Buffer.byteLength(body)
  const excess = bytes - requests * size
  const slack = requests * HEAD_SLACK
  return excess >= -slack && excess <= slack + connections * size
}

/** Time for a load to end by itself before it is ended (ms). */
export function patienceFor({ until }: Load): number {
  return 'seconds' in until ? (until.seconds + 20) * 1000 : 30_000 + until.requests
}
