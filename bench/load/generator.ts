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
  readonly method?: 'GET' | 'POST'
  readonly body?: string
  /** wrk only: a Lua script of ours, and its arguments, that makes the requests. */
  readonly script?: readonly string[]
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

/** Whether answers of this average size can all have been the expected one. */
export function rightSize(bytesPerAnswer: number, { body, headBytes }: ExpectedAnswer): boolean {
  return Math.abs(bytesPerAnswer - headBytes - Buffer.byteLength(body)) <= HEAD_SLACK
}

/** Time for a load to end by itself before it is ended (ms). */
export function patienceFor({ until }: Load): number {
  return 'seconds' in until ? (until.seconds + 20) * 1000 : 30_000 + until.requests
}
