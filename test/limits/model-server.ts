import {
  type Script,
  type SharedStore,
  type StoreReply,
  StoreUnavailable,
} from '../../src/fleet/shared-store.ts'
import type { Clock } from '../../src/system/clock.ts'

/** A window on the server. Like the server, it lives through the whole millisecond in which it closes. */
interface ModelWindow {
  readonly closesAt: number
  count: number
}

/** A question that a test answers when it likes. */
export interface Question {
  readonly keys: readonly string[]
  /** The server runs the script. */
  run(): void
  /** The sidecar gets the reply. */
  reply(): void
}

/** What a sidecar's windows need of a shared store, and what a test does to it. */
export interface ModelStore extends Pick<SharedStore, 'prefix' | 'run'> {
  up: boolean
  /** How the next questions end: `wait` leaves them to the test. */
  mode: 'answer' | 'fail' | 'wait'
  /** The number of questions so far. */
  asked: number
  readonly waiting: Question[]
}

export interface ModelServer {
  /** The window of a full name, if it is open. */
  open(name: string): ModelWindow | undefined
  /** Every window that was ever opened. */
  readonly opened: readonly (ModelWindow & { readonly name: string })[]
  /** The store of one sidecar. */
  connect(): ModelStore
}

/** Counts as the script on the server does, by its own clock, in whole milliseconds. */
export function startModelServer(clock: Pick<Clock, 'monotonic'>, ahead = 12_345.6): ModelServer {
  const windows = new Map<string, ModelWindow & { readonly name: string }>()
  const opened: (ModelWindow & { readonly name: string })[] = []
  const now = (): number => Math.floor(clock.monotonic() + ahead)

  function open(name: string): ModelWindow | undefined {
    const window = windows.get(name)
    return window !== undefined && now() <= window.closesAt ? window : undefined
  }

  function count(keys: readonly string[], args: readonly (string | number)[]): StoreReply {
    const [requests = 0, length = 0, overflow = '', ...amounts] = args
    return keys.flatMap((key, i) => {
      const overflowed = overflow !== '' && open(key) === undefined
      const name = overflowed ? String(overflow) : key
      let window = open(name)
      if (window === undefined) {
        const fresh = { name, closesAt: now() + Number(length), count: 0 }
        windows.set(name, fresh)
        opened.push(fresh)
        window = fresh
      }
      const before = window.count
      window.count = Math.max(before, Math.min(Number(requests), before + Number(amounts[i])))
      return [before, window.closesAt - now(), Number(overflowed)]
    })
  }

  function connect(): ModelStore {
    const store: ModelStore = {
      prefix: '{p}:',
      up: true,
      mode: 'answer',
      asked: 0,
      waiting: [],
      run({ name }: Script, keys, args) {
        store.asked += 1
        if (store.mode === 'answer') return Promise.resolve(count(keys, args))
        if (store.mode === 'fail') return Promise.reject(new StoreUnavailable(name, 'timeout', 'no answer'))
        const { promise, resolve } = Promise.withResolvers<StoreReply>()
        let reply: StoreReply = null
        store.waiting.push({
          keys,
          run() {
            reply = count(keys, args)
          },
          reply: () => resolve(reply),
        })
        return promise
      },
    }
    return store
  }

  return { open, opened, connect }
}
