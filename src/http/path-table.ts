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
