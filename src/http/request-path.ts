/**
 * What two readers could take for different paths: dot segments, also with parameters (`/..;/`), empty segments,
 * backslashes, and anything encoded that would have to be decoded to know, in overlong UTF-8 and `%u` too, which old
 * decoders take.
 */
const AMBIGUOUS = /\/\.{1,2}(?:[/;]|$)|\/\/|\\|%(?:2e|2f|5c|25|00|3b|23|3f|u|c[01]%[89ab]|e0%[89]|f0%8)/i

/** Whether a path, without its query, may mean something else to a reader who decodes or resolves it. */
export function isAmbiguousPath(path: string): boolean {
  return AMBIGUOUS.test(path)
}

/** The path of a target: without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?')
  return query < 0 ? target : target.slice(0, query)
}

/** Finds the entry that takes a path, or undefined. */
export type FindPath<T> = (path: string) => T | undefined

/**
 * A name that ends in `/` stands for everything below it, any other for exactly that path; the longest that fits wins.
 * Compared byte for byte with a path without its query.
 */
export function createPathTable<T>(entries: Iterable<readonly [string, T]>): FindPath<T> {
  const exact = new Map<string, T>()
  const prefixes: (readonly [string, T])[] = []
  for (const [name, value] of entries) {
    if (name.endsWith('/')) prefixes.push([name, value])
    else exact.set(name, value)
  }
  prefixes.sort(([a], [b]) => b.length - a.length)
  return (path) => exact.get(path) ?? prefixes.find(([prefix]) => path.startsWith(prefix))?.[1]
}
