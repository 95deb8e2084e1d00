import { createPathTable, isAmbiguousPath } from '../../http/request-path.ts'
import { type AllowRule, READ, UPGRADE } from '../../http/scope.ts'

/** What of an `allow` requests have used. */
export interface Usage {
  /** A request was forwarded. `path` may be cut. */
  mark(method: string, path: string): void
  /** The rest: a text for each rule of which something is unused. */
  unused(): readonly string[]
}

/** Watches which methods and paths of an `allow` are used. Of two paths that cover a request, the longer one is. */
export function usageOf(allow: 'read' | readonly AllowRule[]): Usage {
  const rules = (allow === 'read' ? READ : allow).map(({ methods, paths }) => ({
    methods,
    paths,
    find: createPathTable((paths ?? ['/']).map((path) => [path, path] as const)),
    used: { methods: new Set<string>(), paths: new Set<string>() },
  }))
  return {
    mark(method, path) {
      for (const { methods, paths, find, used } of rules) {
        if (methods === undefined ? method === UPGRADE : !methods.includes(method)) continue
        const found = find(path)
        if (found === undefined || (paths !== undefined && isAmbiguousPath(path))) continue
        used.methods.add(method)
        used.paths.add(found)
      }
    },
    unused: () =>
      rules.flatMap(({ methods = [], paths = [], used }, index) => {
        if (used.paths.size === 0) return [`rule ${index + 1}: nothing of it`]
        const rest = [
          ...methods.filter((method) => !used.methods.has(method)),
          ...paths.filter((path) => !used.paths.has(path)),
        ]
        return rest.length === 0 ? [] : [`rule ${index + 1}: ${rest.join(', ')}`]
      }),
  }
}
