import { camelCase, type Field } from './field.ts'
import { type Config, schema } from './schema.ts'

/** The keys that differ between two configurations, dotted as in the file. */
export interface Changes {
  /** They take effect at once. */
  readonly live: readonly string[]
  /** They wait for a restart. */
  readonly restart: readonly string[]
}

/** Which keys differ between two configurations, by what it takes to put them into effect. */
export function changesBetween(before: Config, after: Config): Changes {
  const changed = changesBelow(schema, before, after, [])
  const keys = (live: boolean): string[] =>
    changed.filter((change) => change.live === live).map(({ path }) => path.join('.'))
  return { live: keys(true), restart: keys(false) }
}

interface Change {
  readonly path: readonly string[]
  readonly live: boolean
}

/** `upstream.routes`, a mapping with the operator's own names, counts as one key; headers count one by one. */
function changesBelow(
  field: Field<unknown>,
  before: unknown,
  after: unknown,
  path: readonly string[],
): Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (field.kind === 'value' || field.kind === 'named' || !isMapping(before) || !isMapping(after))
    return [{ path, live: field.live(before, after) }]
  if (field.kind === 'headers') {
    const names = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...names]
      .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
      .map((name) => ({ path: [...path, name], live: field.live(before, after) }))
  }
  return [...field.keys].flatMap(([key, each]) => {
    const name = camelCase(key)
    return changesBelow(each, before[name], after[name], [...path, key])
  })
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
