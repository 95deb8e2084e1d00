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

/** The rules by which one device's responses are read. `auto` may become `tolerant`, and stays so. */
export interface DeviceRules {
  /** The rules for the next response. With `tolerant` a connection carries one request: stray bytes cannot become a response. */
  readonly current: ResponseRules
  /** The device sent a response that the strict rules refuse. */
  foundSloppy(): void
}

/** @param onTolerant called once, when `auto` becomes `tolerant` */
export function createDeviceRules(mode: ResponseRules, onTolerant: () => void): DeviceRules {
  let current = mode
  return {
    get current() {
      return current
    },
    foundSloppy() {
      // Another connection may have reported it first.
      if (current !== 'auto') return
      current = 'tolerant'
      onTolerant()
    },
  }
}
