/** Whether the target of a request needs no token. */
export type IsPublic = (target: string) => boolean

/**
 * What two readers could take for different paths: dot segments, also with parameters (`/..;/`), empty segments,
 * backslashes, and anything encoded that would have to be decoded to know. Such a path is never public, so that no
 * spelling of a guarded path passes for a public one, however the device reads it.
 */
const AMBIGUOUS = /\/\.{1,2}(?:[/;]|$)|\/\/|\\|%(?:2e|2f|5c|25|00|3b|23|3f)/i

/**
 * An entry that ends in `/` stands for everything below it, any other for exactly that path. They are compared with
 * the path as the device will see it, byte for byte, the query aside.
 */
export function createPublicPaths(entries: readonly string[]): IsPublic {
  if (entries.length === 0) return () => false
  const exact = new Set(entries.filter((entry) => !entry.endsWith('/')))
  const prefixes = entries.filter((entry) => entry.endsWith('/'))
  return (target) => {
    const query = target.indexOf('?')
    const path = query < 0 ? target : target.slice(0, query)
    if (AMBIGUOUS.test(path)) return false
    return exact.has(path) || prefixes.some((prefix) => path.startsWith(prefix))
  }
}
