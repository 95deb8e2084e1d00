import { type AllowRule, compileRules } from '../../http/scope.ts'

/** The parts of an `allow` that requests have used. */
export interface Usage {
  /** Call this for a request that this `allow` may have admitted. `path` may be cut. */
  mark(method: string, path: string): void
  /** The unused methods and paths: one text for each rule that has some. */
  unused(): readonly string[]
}

/** Records which methods and paths of an `allow` are used. If two paths of a rule cover a request, the longer one counts as used. */
export function usageOf(allow: 'read' | readonly AllowRule[]): Usage {
  const rules = compileRules(allow).map((rule) => ({
    ...rule,
    used: { methods: new Set<string>(), paths: new Set<string>() },
  }))
  return {
    mark(method, path) {
      for (const { covers, used } of rules) {
        const found = covers(method, path)
        if (found === undefined) continue
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
