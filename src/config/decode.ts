import { type Field, z } from './field.ts'
import type { YamlValue } from './yaml.ts'

/** One problem with the value at `path`. `unknown` lists the unknown keys in it. */
export interface Issue {
  readonly path: readonly string[]
  readonly message: string
  readonly unknown: readonly string[]
}

type Decoded<T> = { readonly value: T } | { readonly issues: readonly Issue[] }

/** Converts a YAML tree to the value that the field describes, or returns all issues at once. */
export function decode<T>(field: Field<T>, tree: YamlValue): Decoded<T> {
  const result = z.safeDecode(field.schema, tree)
  return result.success
    ? { value: result.data }
    : { issues: result.error.issues.flatMap((issue) => flatten(issue, [])) }
}

/** The YAML form of a value; `decode` converts it back. */
export function encode<T>(field: Field<T>, value: T): unknown {
  return z.encode(field.schema, value)
}

/** If only one alternative of a union has the type of the value, reports the issues of that alternative instead of the union's. */
function flatten(issue: z.core.$ZodIssue, above: readonly string[]): readonly Issue[] {
  const path = [...above, ...issue.path.map(String)]
  if (issue.code === 'unrecognized_keys') return [{ path, message: issue.message, unknown: issue.keys }]
  if (issue.code === 'invalid_union') {
    const matching = issue.errors.filter((branch) => !branch.some(isWrongType))
    const [only] = matching
    if (only !== undefined && matching.length === 1) return only.flatMap((inner) => flatten(inner, path))
  }
  return [{ path, message: issue.message, unknown: [] }]
}

function isWrongType(issue: z.core.$ZodIssue): boolean {
  return issue.path.length === 0 && (issue.code === 'invalid_type' || issue.code === 'invalid_value')
}
