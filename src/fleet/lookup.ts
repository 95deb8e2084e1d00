import { lookup as lookupAll } from 'node:dns/promises'
import type { LookupFunction } from 'node:net'

/**
 * Resolves names as Node does, but asks for a name once at a time. Node asks in its thread pool, and a resolver that does not answer
 * holds a thread for many seconds: attempts to connect, one a second, would take all threads, which also hash passwords.
 *
 * @param resolve all addresses of a name
 */
export function createLookup(resolve: typeof resolveAll = resolveAll): LookupFunction {
  const pending = new Map<string, ReturnType<typeof resolveAll>>()
  return (host, { all }, callback) => {
    let asking = pending.get(host)
    if (asking === undefined) {
      asking = resolve(host).finally(() => pending.delete(host))
      pending.set(host, asking)
    }
    asking.then(
      (addresses) => {
        const [first] = addresses
        if (all || first === undefined) callback(null, addresses)
        else callback(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    )
  }
}

function resolveAll(host: string): Promise<{ address: string; family: number }[]> {
  return lookupAll(host, { all: true })
}
