import { hash } from 'node:crypto'
import type { Clock } from '../system/clock.ts'

/** In ms. Each further refusal doubles the pause: devices lock an account after a few failures in some minutes. */
const SHORTEST = 30_000
const LONGEST = 960_000

interface Pause {
  /** Begins a pause for this password and returns its length (ms). */
  begin(password: string): number
  blocks(password: string): boolean
  end(): void
}

/** The pause before a password that the device refused is tried again. Any other password may be tried at once. */
export function createPause(clock: Clock): Pause {
  let refused: { readonly digest: string; readonly length: number; readonly until: number } | undefined

  return {
    begin(password) {
      const digest = digestOf(password)
      const length = refused?.digest === digest ? Math.min(refused.length * 2, LONGEST) : SHORTEST
      refused = { digest, length, until: clock.monotonic() + length }
      return length
    },
    blocks: (password) =>
      refused !== undefined && clock.monotonic() < refused.until && digestOf(password) === refused.digest,
    end() {
      refused = undefined
    },
  }
}

function digestOf(password: string): string {
  return hash('sha256', password, 'base64')
}
