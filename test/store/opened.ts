import { EventEmitter, once } from 'node:events'
import { parseStoreUrl } from '../../src/config/store-fields.ts'
import type { StoreSettings } from '../../src/fleet/connection.ts'
import { openSharedStore } from '../../src/fleet/open-store.ts'
import type { Script, SharedStore, StoreUnavailable } from '../../src/fleet/shared-store.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { closeLater } from '../support/cleanup.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'

/** The longest pause between two attempts to connect (ms): after a refused login. */
const LONGEST_PAUSE = 1_000

/** An open store, and what its listener heard. */
export interface Opened {
  readonly store: SharedStore
  /** `up`, `down` or `refusing` with the failure, `accepting`. */
  readonly transitions: readonly string[]
  readonly failures: readonly StoreUnavailable[]
  readonly durations: readonly number[]
  /** Its time stands still. */
  readonly clock: MovableClock
  /** Lets the pause before the next attempt to connect pass, and waits for how that ends. */
  tryAgain(): Promise<void>
  /** The same, until an attempt succeeds. */
  connectAgain(): Promise<void>
}

/** Opens a store by its URL; it is closed with the test. Its prefix is `postern`. */
export async function open(
  url: string,
  settings: Partial<StoreSettings> = {},
  clock: MovableClock = stillClock(),
): Promise<Opened> {
  const parsed = parseStoreUrl(url)
  if ('problem' in parsed) throw new Error(parsed.problem)
  const transitions: string[] = []
  const failures: StoreUnavailable[] = []
  const durations: number[] = []
  const attempts = new EventEmitter()
  const store = await openSharedStore(
    {
      address: parsed.value,
      prefix: 'postern',
      timeout: 5_000,
      replicas: 0,
      tls: {},
      ...settings,
    },
    {
      failed(error) {
        failures.push(error)
        if (error.operation === 'connect') attempts.emit('ended')
      },
      up() {
        transitions.push('up')
        attempts.emit('ended')
      },
      down: ({ failure, message }) => transitions.push(`down: ${failure}: ${message}`),
      refusing: ({ failure, message }) => transitions.push(`refusing: ${failure}: ${message}`),
      accepting: () => transitions.push('accepting'),
      answered: (duration) => durations.push(duration),
    },
    clock,
  )
  closeLater(() => store.close())
  async function tryAgain(): Promise<void> {
    const ended = once(attempts, 'ended')
    // The end of the last attempt has set the timer of the pause by then.
    await nextTurn()
    await clock.advance(LONGEST_PAUSE)
    await ended
  }
  async function connectAgain(): Promise<void> {
    while (!store.up) await tryAgain()
  }
  return { store, transitions, failures, durations, clock, tryAgain, connectAgain }
}

export const KEY = '{postern}:n'

export const ADD: Script = { name: 'count', source: "return redis.call('INCRBY', KEYS[1], ARGV[1])" }
export const READ: Script = { name: 'lookup', source: "return redis.call('GET', KEYS[1])" }
export const REVOKE: Script = {
  name: 'revoke',
  source: "return redis.call('XADD', KEYS[1], '*', 'grant', ARGV[1])",
}

/** `timeout`, `disconnected` and so on, or `none` if it was fulfilled. */
export async function failureOf(asking: Promise<unknown>): Promise<string> {
  return asking.then(
    () => 'none',
    (error: StoreUnavailable) => error.failure,
  )
}
