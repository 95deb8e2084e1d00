import type { Field } from './field.ts'
import { schema } from './schema.ts'

/** A key of the file, sections included. */
export interface KnownKey {
  readonly path: readonly string[]
  readonly field: Field<unknown>
}

/** Every key, in the order of the reference page; a section stands before what is in it. */
export const knownKeys: readonly KnownKey[] = below([], schema)

/** Every key in its dotted form. */
export const dottedKeys: readonly string[] = knownKeys.map(dotted)

/** The same below a path whose names are the operator's own. */
export function dottedKeysBelow(path: readonly string[], field: Field<unknown>): readonly string[] {
  return below(path, field).map(dotted)
}

/** The environment variable of a key: `limits.api.requests` is `POSTERN_LIMITS_API_REQUESTS`. */
export function environmentName(path: readonly string[]): string {
  return `POSTERN_${path.join('_').toUpperCase()}`
}

function dotted({ path }: KnownKey): string {
  return path.join('.')
}

function below(path: readonly string[], field: Field<unknown>): KnownKey[] {
  return [...field.keys].flatMap(([key, each]) => {
    const here = { path: [...path, key], field: each }
    return [here, ...below(here.path, each)]
  })
}
