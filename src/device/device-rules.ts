import type { ResponseRules } from '../http1/response-reader.ts'

/** By which rules the device's responses are read. One for each device; it only ever becomes more tolerant. */
export interface DeviceRules {
  /** For the next response. `tolerant` allows one request on a connection: what the device sends too much never becomes an answer. */
  readonly current: ResponseRules
  /** The device has sent what the strict rules refuse. */
  foundSloppy(): void
}

/** @param onTolerant told once, when a device that was to be found out has proved sloppy */
export function createDeviceRules(mode: ResponseRules, onTolerant: () => void): DeviceRules {
  let current = mode
  return {
    get current() {
      return current
    },
    foundSloppy() {
      // Others may have found out meanwhile.
      if (current !== 'auto') return
      current = 'tolerant'
      onTolerant()
    },
  }
}
