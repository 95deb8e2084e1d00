import { createPathTable, isAmbiguousPath, pathOf } from '../http/request-path.ts'

/** Whether a request with this target needs no token. */
export type IsPublic = (target: string) => boolean

/**
 * Compares the entries with the path as the device receives it. An ambiguous path is never public: the device could resolve it to
 * a path that needs a token.
 */
export function createPublicPaths(entries: readonly string[]): IsPublic {
  if (entries.length === 0) return () => false
  const find = createPathTable(entries.map((entry) => [entry, true] as const))
  return (target) => {
    const path = pathOf(target)
    return !isAmbiguousPath(path) && find(path) === true
  }
}
