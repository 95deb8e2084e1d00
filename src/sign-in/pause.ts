import { createHash } from 'node:crypto'
import type { Clock } from '../system/clock.ts'

/** Keeps a password that the device has refused from being tried again too soon. */
export interface Pause {
  /** Begins with this password; the milliseconds until it may be tried again. */
  begin(password: string): number
  /** Whether this password has to wait. Another one never does. */
  holds(password: string): boolean
  end(): void
}

/** Doubled with every refusal in a row: devices that lock accounts count a handful of failures in some minutes. */
const SHORTEST = 30_000
const LONGEST = 960_000

export function createPause(clock: Clock): Pause {
  let refused: { readonly digest: string; readonly length: number; readonly until: number } | undefined

  return {
    begin(password) {
      const digest = digestOf(password)
      const length = refused?.digest === digest ? Math.min(refused.length * 2, LONGEST) : SHORTEST
      refused = { digest, length, until: clock.monotonic() + length }
      return length
    },
    holds: (password) =>
      refused !== undefined && clock.monotonic() < refused.until && digestOf(password) === refused.digest,
    end() {
      refused = undefined
    },
  }
}

function digestOf(password: string): string {
  return createHash('sha256').update(password).digest('base64')
}
