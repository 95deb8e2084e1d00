import type { ResponseRules } from '../http1/response-reader.ts'

/** Whether a connection to the device carries one request after another, or only one, with `Connection: close`. */
export type Reuse = 'shared' | 'never'

/** Where the device is and how to talk to it. */
export interface UpstreamTarget {
  /** Scheme, host and port; `http://localhost` for a Unix socket. */
  readonly origin: string
  readonly socketPath: string | undefined
  /** Only for https: own authorities (PEM), and whether to verify at all. */
  readonly ca: string | undefined
  readonly insecure: boolean
  readonly reuse: Reuse
  readonly parser: ResponseRules
}

/** Deadlines towards the device, in ms. */
export interface UpstreamDeadlines {
  readonly connect: number
  /** From the request to the response head. */
  readonly response: number
  /** Between two pieces of a running body, either way. */
  readonly idle: number
}
