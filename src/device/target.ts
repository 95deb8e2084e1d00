import type { ResponseRules } from '../http1/response-reader.ts'

/** `shared`: a connection to the device carries one request after the other. `never`: only one, with `Connection: close`. */
export type Reuse = 'shared' | 'never'

/** Where the device is and how to talk to it. */
export interface UpstreamTarget {
  /** Scheme, host and port; `http://localhost` for a Unix socket. */
  readonly origin: string
  readonly socketPath: string | undefined
  /** Only for https: the certificate authorities to trust (PEM). */
  readonly ca: string | undefined
  /** Only for https: the certificate is not verified. */
  readonly insecure: boolean
  readonly reuse: Reuse
  readonly parser: ResponseRules
}
