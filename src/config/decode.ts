import { type Field, z } from './field.ts'
import type { YamlValue } from './yaml.ts'

/** One problem with the value at `path`. `isUnknown`: the last key of the path is unknown. */
export interface Issue {
  readonly path: readonly string[]
  readonly message: string
  readonly isUnknown?: true
}

type Decoded<T> = { readonly value: T } | { readonly issues: readonly Issue[] }

/** Converts a YAML tree to the value that the field describes, or returns all issues at once. */
export function decode<T>(field: Field<T>, tree: YamlValue): Decoded<T> {
  const result = z.safeParse(field.schema(), tree)
  return result.success
    ? { value: result.data }
    : { issues: result.error.issues.flatMap((issue) => flatten(issue, [])) }
}

/** If only one alternative of a union has the type of the value, reports the issues of that alternative instead of the union's. */
function flatten(issue: z.core.$ZodIssue, above: readonly string[]): readonly Issue[] {
  const path = [...above, ...issue.path.map(String)]
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ path: [...path, key], message: issue.message, isUnknown: true }))
  if (issue.code === 'invalid_union') {
    const matching = issue.errors.filter((branch) => !branch.some(isWrongType))
    const [only] = matching
    if (only !== undefined && matching.length === 1) return only.flatMap((inner) => flatten(inner, path))
  }
  return [{ path, message: issue.message }]
}

function isWrongType(issue: z.core.$ZodIssue): boolean {
  const codes = ['invalid_type', 'invalid_value', 'invalid_union']
  return issue.path.length === 0 && codes.includes(issue.code ?? '')
}
