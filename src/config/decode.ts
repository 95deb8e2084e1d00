import { type Field, z } from './field.ts'
import type { YamlValue } from './yaml.ts'

/** One thing wrong with the value at `path`. `unknown` lists keys there that nobody knows. */
export interface Issue {
  readonly path: readonly string[]
  readonly message: string
  readonly unknown: readonly string[]
}

type Decoded<T> = { readonly value: T } | { readonly issues: readonly Issue[] }

/** Reads a tree of YAML values. All that is wrong with it comes back at once. */
export function decode<T>(field: Field<T>, tree: YamlValue): Decoded<T> {
  const result = z.safeDecode(field.schema, tree)
  return result.success
    ? { value: result.data }
    : { issues: result.error.issues.flatMap((issue) => flatten(issue, [])) }
}

/** The YAML form of a value, from which `decode` gives the value again. */
export function encode<T>(field: Field<T>, value: T): unknown {
  return z.encode(field.schema, value)
}

/**
 * The JSON Schema of the YAML form, in draft 7, the one that editors know best. A section without required keys may be
 * `null`: YAML reads a section whose keys are all commented out as `null`, and `layer` takes that for a section left out.
 */
export function jsonSchema(field: Field<unknown>): Record<string, unknown> {
  const schema = z.toJSONSchema(field.schema, {
    io: 'input',
    target: 'draft-7',
    override({ jsonSchema: each, path }) {
      const mayBeEmpty = each.required === undefined && each.minProperties === undefined
      if (path.length > 0 && each.type === 'object' && mayBeEmpty)
        Object.assign(each, { type: ['object', 'null'] })
    },
  })
  return { ...schema }
}

/** Where one alternative of a union has the right shape and fails within, what fails within is the news. */
function flatten(issue: z.core.$ZodIssue, above: readonly string[]): readonly Issue[] {
  const path = [...above, ...issue.path.map(String)]
  if (issue.code === 'unrecognized_keys') return [{ path, message: issue.message, unknown: issue.keys }]
  if (issue.code === 'invalid_union') {
    const shaped = issue.errors.filter((branch) => !branch.some(isWrongShape))
    const [only] = shaped
    if (only !== undefined && shaped.length === 1) return only.flatMap((inner) => flatten(inner, path))
  }
  return [{ path, message: issue.message, unknown: [] }]
}

function isWrongShape(issue: z.core.$ZodIssue): boolean {
  return issue.path.length === 0 && (issue.code === 'invalid_type' || issue.code === 'invalid_value')
}
