import type { LookupAddress } from 'node:dns'
import { lookup as lookupAll } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { type Clock, systemClock } from './clock.ts'
import { codeOf } from './setup-error.ts'

export type Names = Readonly<ReturnType<typeof createLookup>>

/** How long (ms) addresses are used without a new look-up, and how long a failure is kept. */
const KEPT_FOR = 5_000
const FAILURE_KEPT_FOR = 1_000

/**
 * The greatest age (ms) of addresses that are used while a new look-up runs, or after one that failed for a passing reason. Older addresses may
 * belong to another machine by now, which would get the credentials of the device.
 */
const OLDEST_USED = 600_000

/**
 * The most look-ups at a time, over all names. Each takes one of the four threads of Node's pool while the resolver is silent. The other two
 * threads hash passwords.
 */
const MOST_AT_A_TIME = 2

/** What is known of a name: its addresses, or that the look-up failed. */
interface Known {
  readonly result: Promise<LookupAddress[]>
  readonly hasFailed: boolean
  /** When the next look-up is due, and until when the result is used meanwhile (ms, monotonic). */
  readonly due: number
  readonly end: number
}

/** The errors that say that the name has no address. After others, such as a resolver that does not answer, earlier addresses stay in use. */
const NONE: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA'])

/**
 * Resolves names as Node does, but runs one look-up of a name at a time, for all callers, and keeps the addresses for a few seconds. A look-up goes
 * on when its callers have given up. Node resolves in its thread pool, and a resolver that does not answer holds a thread for many
 * seconds: attempts to connect, one a second, would take all threads, which also hash passwords.
 *
 * @param resolve all addresses of a name
 */
export function createLookup(
  resolve = (host: string): Promise<LookupAddress[]> => lookupAll(host, { all: true }),
  { monotonic }: Clock = systemClock,
) {
  const known = new Map<string, Known>()
  const running = new Map<string, Promise<LookupAddress[]>>()
  /** The names whose turn has not come. */
  const waiting: (() => void)[] = []
  let places = MOST_AT_A_TIME

  async function ask(host: string): Promise<LookupAddress[]> {
    if (places === 0) await new Promise<void>((start) => waiting.push(start))
    else places -= 1
    try {
      return await resolve(host)
    } finally {
      const next = waiting.shift()
      if (next === undefined) places += 1
      else next()
    }
  }

  async function learn(host: string): Promise<LookupAddress[]> {
    const result = ask(host)
    const failure = await result.then(
      () => undefined,
      (error: unknown) => error,
    )
    running.delete(host)
    const now = monotonic()
    const before = usable(host)
    const soon = now + FAILURE_KEPT_FOR
    if (failure === undefined)
      known.set(host, { result, hasFailed: false, due: now + KEPT_FOR, end: now + OLDEST_USED })
    else if (before === undefined || NONE.has(codeOf(failure)))
      known.set(host, { result, hasFailed: true, due: soon, end: soon })
    else known.set(host, { ...before, due: soon })
    return result
  }

  function usable(host: string): Known | undefined {
    const found = known.get(host)
    return found === undefined || found.end <= monotonic() ? undefined : found
  }

  function addressesOf(host: string): Promise<LookupAddress[]> {
    const found = usable(host)
    if (found !== undefined && monotonic() < found.due) return found.result
    const asking = running.getOrInsertComputed(host, () => learn(host))
    // A caller that gets the known addresses does not await it.
    asking.catch(() => {})
    return found?.result ?? asking
  }

  const lookup: LookupFunction = (host, { all }, callback) => {
    addressesOf(host).then(
      (addresses) => {
        const [first] = addresses
        if (all || first === undefined) callback(null, addresses)
        else callback(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    )
  }

  return {
    /** For the option `lookup` of a socket. */
    lookup,
    /** Whether a connection to the host waits for its look-up. Never for an address. */
    isResolving: (host: string): boolean =>
      isIP(host) === 0 && running.has(host) && usable(host) === undefined,
    /** None of its addresses could be connected to: the next connection waits for a new look-up. */
    forget(host: string): void {
      if (known.get(host)?.hasFailed === false) known.delete(host)
    },
  }
}

/** Resolves the names of the device and of the shared store, whose look-ups share the threads. */
export const NAMES: Names = createLookup()
