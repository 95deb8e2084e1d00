import type { WindowPolicy } from '../limits/window-table.ts'
import type { Clock } from '../system/clock.ts'
import { listOf, type Script, type SharedStore, type StoreReply } from './shared-store.ts'

/**
 * Counts requests in windows, each key checked and counted in one step (C14). `PTTL` is negative without a window, so the key's
 * next request opens one. A refused request writes nothing: it neither raises the count nor prolongs the window (C15). Only a
 * server's clock that was set back leaves a window more time than its length; it gets its length.
 *
 * Arguments: requests and length of a window; the key of the overflow window, or an empty text; for each key the number of its
 * requests. With an overflow window no other window is opened: a key without one counts there (C17).
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

/** What the server says about the window of a key. */
interface WindowCount {
  /** Requests that the window had admitted before those of this question. */
  readonly before: number
  /** Whole milliseconds until the window closes, rounded down. */
  readonly left: number
  /** The requests counted in the overflow window. */
  readonly overflowed: boolean
}

/**
 * Counts requests on the server, in one step.
 *
 * @param amounts the number of requests of each window, by its full name
 * @param overflow the full name of the overflow window, if no other window may be opened
 * @returns the windows in the order of `amounts`. Rejects with `StoreUnavailable`, or if the reply is not this script's
 */
async function countOnServer(
  store: Pick<SharedStore, 'run'>,
  policy: WindowPolicy,
  amounts: ReadonlyMap<string, number>,
  overflow: string | undefined,
): Promise<readonly WindowCount[]> {
  const args = [policy.requests, policy.window, overflow ?? '', ...amounts.values()]
  const counts = decode(await store.run(COUNT, [...amounts.keys()], args))
  if (counts.length !== amounts.size) throw new Error('the shared store answered for other windows')
  return counts
}

function decode(reply: StoreReply): readonly WindowCount[] {
  const counts: WindowCount[] = []
  const values = listOf(reply)
  for (let i = 0; i < values.length; i += 3) {
    const [before, left, overflowed] = [values[i], values[i + 1], values[i + 2]]
    if (typeof before !== 'number' || typeof left !== 'number')
      throw new Error('the shared store answered a count with no number')
    counts.push({ before, left, overflowed: overflowed === 1 })
  }
  return counts
}

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
