import type { WindowPolicy } from '../limits/window-table.ts'
import { afterTurn, type Clock } from '../system/clock.ts'
import { listOf, type Script, type SharedStore } from './shared-store.ts'

/**
 * Counts requests in windows, each key checked and counted in one step (C14). `PTTL` is negative without a window, so the key's
 * next request opens one. A refused request writes nothing: it neither raises the count nor prolongs the window (C15). After the
 * server's clock was set back, a window has more time left than its length; the script cuts that to the length.
 *
 * Arguments: requests and length of a window; the key of the overflow window, or an empty text; for each key the number of its
 * requests. With an overflow window, the script opens no other window: a key without a window counts in the overflow window (C17).
 * Reply: for each key the count before, the time left (ms), and 1 if its requests counted in the overflow window.
 */
const COUNT: Script = {
  name: 'count',
  source: `
local requests, length, overflow = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local reply = {}
for i, key in ipairs(KEYS) do
  local amount, before, overflowed = tonumber(ARGV[i + 3]), 0, 0
  local left = redis.call('PTTL', key)
  if left < 0 and overflow ~= '' then
    key, overflowed = overflow, 1
    left = redis.call('PTTL', key)
  end
  if left < 0 then
    left = length
    redis.call('SET', key, math.min(amount, requests), 'PX', length)
  else
    if left > length then
      left = length
      redis.call('PEXPIRE', key, length)
    end
    before = tonumber(redis.call('GET', key))
    if before < requests then
      redis.call('INCRBY', key, math.min(amount, requests - before))
    end
  end
  local last = #reply
  reply[last + 1], reply[last + 2], reply[last + 3] = before, left, overflowed
end
return reply
`,
}

/** The most windows in one call, so that no script keeps the server from its other clients for more than a millisecond. */
const WINDOWS_PER_CALL = 256

/** The server's answer to one request. */
export interface CountAnswer {
  /** Requests that the window had admitted before this one. */
  readonly before: number
  /** Whole milliseconds until the window closes, rounded down. */
  readonly left: number
  /** The request counted in the overflow window. */
  readonly overflowed: boolean
  /** When the question was sent, and when its answer came (ms on the monotonic clock). */
  readonly askedAt: number
  readonly answeredAt: number
}

/**
 * Returns a function that counts a request on the server, in the window with this full name. It rejects with `StoreUnavailable`, or if the
 * reply is not this script's. Requests of one turn of the event loop travel in one call, and those of one window as one number: a window
 * costs the server 2 µs in a call with a hundred, and 5 µs in a call of its own.
 *
 * @param overflow the full name of the overflow window, if no other window may be opened
 */
export function createCountBatches(
  policy: WindowPolicy,
  { store, clock }: { readonly store: Pick<SharedStore, 'run'>; readonly clock: Clock },
  overflow = '',
): (name: string) => Promise<CountAnswer> {
  let waiting = new Map<string, PromiseWithResolvers<CountAnswer>[]>()

  function send(): void {
    const batch = waiting
    waiting = new Map()
    if (batch.size > 0) void ask(batch)
  }

  async function ask(batch: typeof waiting): Promise<void> {
    const amounts = [...batch.values()].map(({ length }) => length)
    const askedAt = clock.monotonic()
    try {
      const args = [policy.requests, policy.window, overflow, ...amounts]
      const values = listOf(await store.run(COUNT, [...batch.keys()], args))
      if (values.length !== 3 * batch.size || !values.every((value) => typeof value === 'number'))
        throw new Error('the shared store answered a count with something else')
      const answeredAt = clock.monotonic()
      for (const [index, askers] of [...batch.values()].entries()) {
        const [before = 0, left = 0, overflowed] = values.slice(3 * index, 3 * index + 3)
        const answer = { left, overflowed: overflowed === 1, askedAt, answeredAt }
        // Requests of one window are counted in the order in which they came.
        for (const [at, { resolve }] of askers.entries()) resolve({ ...answer, before: before + at })
      }
    } catch (error) {
      for (const { reject } of [...batch.values()].flat()) reject(error)
    }
  }

  return (name) => {
    if (waiting.size === 0) afterTurn(send)
    const asker = Promise.withResolvers<CountAnswer>()
    waiting.getOrInsertComputed(name, () => []).push(asker)
    if (waiting.size === WINDOWS_PER_CALL) send()
    return asker.promise
  }
}
