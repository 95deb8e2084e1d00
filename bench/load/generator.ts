/** A load: keep-alive connections that send the same request as fast as answers come. */
export interface Load {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly connections: number
  readonly seconds: number
  readonly core: number | undefined
}

export interface LoadResult {
  readonly requests: number
  readonly requestsPerSecond: number
  /** Milliseconds. */
  readonly p50: number | undefined
  readonly p99: number | undefined
  readonly failed: number
}

export interface Generator {
  readonly name: string
  /** Undefined where it is not installed. */
  version(): Promise<string | undefined>
  run(load: Load): Promise<LoadResult>
}
