import type { WindowPolicy, WindowTable } from './window-table.ts'

/** `own`: the policies of single keys, in place of the one of all others. */
export interface LimitPolicy extends WindowPolicy {
  readonly own?: ReadonlyMap<string, WindowPolicy>
}

/**
 * A window table in which some keys have policies of their own. Each such key has a table of its own, because all windows of a table have the same length. Without
 * such keys, `count` is that of the one table.
 *
 * @param make opens a table
 */
export function createOwnWindows(
  policy: LimitPolicy,
  make: (policy: WindowPolicy) => WindowTable,
): WindowTable {
  const others = make(policy)
  let own: ReadonlyMap<string, WindowTable> = new Map()

  /** A key whose policy has not changed keeps its window. */
  function open(policies: LimitPolicy['own']): WindowTable['count'] {
    own = new Map(
      Array.from(policies ?? [], ([key, each]) => {
        const table = own.get(key) ?? make(each)
        table.applyPolicy(each)
        return [key, table] as const
      }),
    )
    return own.size === 0 ? others.count : (key) => (own.get(key) ?? others).count(key)
  }

  const all: WindowTable = {
    count: open(policy.own),
    get size() {
      return own.values().reduce((sum, { size }) => sum + size, others.size)
    },
    usedUp: () => [...own.values().flatMap((table) => table.usedUp()), ...others.usedUp()],
    applyPolicy(next: LimitPolicy, maxKeys) {
      others.applyPolicy(next, maxKeys)
      all.count = open(next.own)
    },
  }
  return all
}
