import type { HttpVersion } from '../http1/request-writer.ts'
import type { ResponseRules } from '../http1/response-reader.ts'
import type { DeviceTls } from './device-tls.ts'

/** `shared`: a connection to the device carries one request after the other. `never`: only one, with `Connection: close`. */
export type Reuse = 'shared' | 'never'

/** Deadlines towards the device, in ms. */
export interface UpstreamDeadlines {
  readonly connect: number
  /** From the request to the response head. */
  readonly response: number
  /** Between two pieces of a body, in either direction. */
  readonly idle: number
}

/** A deadline that restarts often. One timer is refreshed, because a new timer for each start costs too much. */
export interface Deadline {
  /** Starts the full time again. */
  restart(): void
  close(): void
}

/**
 * @param time ms
 * @param onPassed also called for a wait that is already over: waits are not cancelled, so the caller checks its state
 */
export function createDeadline(time: number, onPassed: () => void): Deadline {
  let timer: NodeJS.Timeout | undefined
  let closed = false
  return {
    restart() {
      if (closed) return
      if (timer === undefined) timer = setTimeout(onPassed, time).unref()
      else timer.refresh()
    },
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}

/** Where the device is and how to talk to it. */
export interface UpstreamTarget {
  /** Scheme, host and port; `http://localhost` for a Unix socket. */
  readonly origin: string
  readonly socketPath: string | undefined
  /** Only for https; undefined: the defaults. */
  readonly tls?: DeviceTls | undefined
  readonly reuse: Reuse
  readonly parser: ResponseRules
  /** The HTTP version of requests; 1.1 if it is left out. With 1.0, `reuse` is `never`. */
  readonly version?: HttpVersion
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
  const rules = {
    current: mode,
    foundSloppy(): void {
      // Another connection may have reported it first.
      if (rules.current !== 'auto') return
      rules.current = 'tolerant'
      onTolerant()
    },
  }
  return rules
}
