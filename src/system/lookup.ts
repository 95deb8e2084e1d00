import type { LookupAddress } from 'node:dns'
import { lookup as lookupAll } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { type Clock, systemClock } from './clock.ts'
import { codeOf } from './setup-error.ts'

export type Names = Readonly<ReturnType<typeof createLookup>>

/** How long (ms) addresses, and a failure, are used without a new look-up. */
const KEPT_FOR = 5_000
const FAILURE_KEPT_FOR = 1_000

/**
 * The greatest age (ms) of addresses that are used while a new look-up runs, or after a temporary failure. Older addresses may belong to
 * another machine by now, which would receive the credentials for the device.
 */
const OLDEST_USED = 600_000

/**
 * The most look-ups at a time, over all names. Each occupies one of the four threads of Node's pool until the resolver answers. The other
 * two threads stay free to hash passwords.
 */
const MOST_AT_A_TIME = 2

/** The result of the last look-up of a name: its addresses, or a failure. */
interface Known {
  readonly result: Promise<LookupAddress[]>
  readonly hasFailed: boolean
  /** When the next look-up is due, and until when the result may be used while that look-up runs (ms, monotonic). */
  readonly due: number
  readonly end: number
}

/** The errors that mean that the name has no address. After any other error, such as a silent resolver, earlier addresses stay in use. */
const NO_ADDRESS: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA'])

/**
 * Resolves names as Node does, but all callers share one look-up per name, and its addresses are kept for a few seconds. A look-up
 * continues when its callers have given up. Node resolves in its thread pool, and a silent resolver holds a thread for many seconds.
 * Without the sharing, one attempt to connect each second would take all threads, which also hash passwords.
 *
 * @param resolve resolves a name to all its addresses
 */
export function createLookup(
  resolve = (host: string): Promise<LookupAddress[]> => lookupAll(host, { all: true }),
  { monotonic }: Clock = systemClock,
) {
  const known = new Map<string, Known>()
  const running = new Map<string, Promise<LookupAddress[]>>()
  /** Starts the look-ups that wait for a place, in order. */
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
    else if (before === undefined || NO_ADDRESS.has(codeOf(failure)))
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
    // Without a handler, a rejection would be unhandled if the caller gets the known addresses.
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
    /** The value for the option `lookup` of a socket. */
    lookup,
    /** Whether a connection to the host has to wait for a running look-up. False for an IP address. */
    isResolving: (host: string): boolean =>
      isIP(host) === 0 && running.has(host) && usable(host) === undefined,
    /** Call this when no address of the host accepts a connection: the next connection waits for a new look-up. */
    forget(host: string): void {
      if (known.get(host)?.hasFailed === false) known.delete(host)
    },
  }
}

/** The look-ups of the process, for the names of the device and of the shared store: they share the threads. */
export const NAMES: Names = createLookup()
