import { camelCase, type Field } from './field.ts'
import { type Config, schema } from './schema.ts'

/** The keys that differ between two configurations, in dotted form. */
export interface Changes {
  /** The keys that take effect without a restart. */
  readonly live: readonly string[]
  /** The keys that take effect only after a restart. */
  readonly restart: readonly string[]
}

/** The keys that differ between two configurations. */
export function changesBetween(before: Config, after: Config): readonly string[] {
  return changesBelow(schema, before, after, []).map((path) => path.join('.'))
}

/** `upstream.routes` counts as one key, although the operator chooses the names in it. Each header counts as its own key. */
function changesBelow(
  field: Field<unknown>,
  before: unknown,
  after: unknown,
  path: readonly string[],
): (readonly string[])[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return []
  if (field.kind === 'value' || field.kind === 'named' || !isMapping(before) || !isMapping(after))
    return [path]
  if (field.kind === 'headers') {
    const names = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...names]
      .filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]))
      .map((name) => [...path, name])
  }
  return [...field.keys].flatMap(([key, each]) => {
    const name = camelCase(key)
    return changesBelow(each, before[name], after[name], [...path, key])
  })
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
}
