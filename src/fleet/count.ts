import type { WindowPolicy } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import { countOnServer, type WindowCount } from './count-script.ts'
import type { SharedStore } from './shared-store.ts'

/** The most windows in one call, so that no script keeps the server from its other clients for more than a millisecond. */
const WINDOWS_PER_CALL = 256

/** The server's answer to one request. */
export interface CountAnswer extends WindowCount {
  /** When the question was sent, and when its answer came (ms on the monotonic clock). */
  readonly askedAt: number
  readonly answeredAt: number
}

interface Asker {
  readonly resolve: (answer: CountAnswer) => void
  readonly reject: (error: unknown) => void
}

/**
 * Counts a request on the server. Requests of one turn of the event loop travel in one call, and those of one window as one
 * number: a window costs the server 2 µs in a call with a hundred, and 5 µs in a call of its own.
 *
 * @param name the window's full name
 * @returns rejects like `countOnServer`
 */
type AskForCount = (name: string) => Promise<CountAnswer>

/** @param overflow the full name of the overflow window, if no other window may be opened */
export function createCountBatches(
  policy: WindowPolicy,
  { store, clock }: { readonly store: Pick<SharedStore, 'run'>; readonly clock: Clock },
  overflow?: string,
): AskForCount {
  let waiting = new Map<string, Asker[]>()

  function send(): void {
    const batch = waiting
    waiting = new Map()
    if (batch.size > 0) void ask(batch)
  }

  async function ask(batch: ReadonlyMap<string, readonly Asker[]>): Promise<void> {
    const amounts = new Map([...batch].map(([name, askers]) => [name, askers.length]))
    const askedAt = clock.monotonic()
    try {
      const counts = await countOnServer(store, policy, amounts, overflow)
      const answeredAt = clock.monotonic()
      let place = 0
      for (const askers of batch.values()) {
        const count = counts[place++]
        if (count !== undefined) answer(askers, { ...count, askedAt, answeredAt })
      }
    } catch (error) {
      for (const askers of batch.values()) for (const { reject } of askers) reject(error)
    }
  }

  return (name) =>
    new Promise((resolve, reject) => {
      if (waiting.size === 0) setImmediate(send)
      const askers = waiting.get(name)
      if (askers === undefined) waiting.set(name, [{ resolve, reject }])
      else askers.push({ resolve, reject })
      if (waiting.size === WINDOWS_PER_CALL) send()
    })
}

/** Requests of one window are counted in the order in which they came. */
function answer(askers: readonly Asker[], first: CountAnswer): void {
  let { before } = first
  for (const { resolve } of askers) {
    resolve({ ...first, before })
    before += 1
  }
}
