import type { WindowPolicy, WindowTable } from './window-table.ts'

/** `own`: the keys with a policy of their own. It replaces the common policy for that key. */
export interface LimitPolicy extends WindowPolicy {
  readonly own?: ReadonlyMap<string, WindowPolicy>
}

/**
 * A window table in which some keys have policies of their own. Each such key has its own table, because all windows of a table have the
 * same length. Without such keys, `count` is the function of the common table, so it costs no look-up.
 *
 * @param make creates a table
 */
export function createOwnWindows(
  policy: LimitPolicy,
  make: (policy: WindowPolicy) => WindowTable,
): WindowTable {
  const others = make(policy)
  let own: ReadonlyMap<string, WindowTable> = new Map()

  /** Opens the tables of `policies` and returns the new `count`. A key whose policy has not changed keeps its window. */
  function open(policies: LimitPolicy['own']): WindowTable['count'] {
    own = new Map(
      Array.from(policies ?? [], ([key, each]) => {
        const table = own.get(key) ?? make(each)
        table.applyPolicy(each)
        return [key, table] as const
      }),
    )
    return own.size === 0 ? others.count : (key, now) => (own.get(key) ?? others).count(key, now)
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
