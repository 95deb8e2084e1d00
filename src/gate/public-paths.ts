import { createPathTable, isAmbiguousPath, pathOf } from '../http/request-path.ts'

/** Whether the target of a request needs no token. */
export type IsPublic = (target: string) => boolean

/**
 * Entries are compared with the path as the device will see it. An ambiguous path is never public, so that no spelling
 * of a guarded path passes for a public one, however the device reads it.
 */
export function createPublicPaths(entries: readonly string[]): IsPublic {
  if (entries.length === 0) return () => false
  const find = createPathTable(entries.map((entry) => [entry, true] as const))
  return (target) => {
    const path = pathOf(target)
    return !isAmbiguousPath(path) && find(path) === true
  }
}
