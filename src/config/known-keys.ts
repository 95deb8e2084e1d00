import { type Field, fieldBelow } from './field.ts'
import { schema } from './schema.ts'

/** A key of the file; a section is a key too. */
export interface KnownKey {
  readonly path: readonly string[]
  readonly field: Field<unknown>
}

/**
 * Every key below a field, in the order of the reference page; a section comes before its keys. Computed at each call, because it takes a
 * millisecond and most starts do not need it.
 *
 * @param path of the field
 */
export function knownKeys(field: Field<unknown> = schema, path: readonly string[] = []): readonly KnownKey[] {
  return [...field.keys].flatMap(([key, each]) => {
    const here = { path: [...path, key], field: each }
    return [here, ...knownKeys(each, here.path)]
  })
}

/** The keys of `knownKeys` in dotted form. */
export function dottedKeys(...below: Parameters<typeof knownKeys>): readonly string[] {
  return knownKeys(...below).map(({ path }) => path.join('.'))
}

/** The environment variable of a key: `limits.api.requests` is `POSTERN_LIMITS_API_REQUESTS`. */
export function environmentName(path: readonly string[]): string {
  return `POSTERN_${path.join('_').toUpperCase()}`
}

/** The fields along a path, up to the first unknown key. */
export function fieldsAlong(path: readonly string[]): readonly Field<unknown>[] {
  const fields: Field<unknown>[] = []
  let field: Field<unknown> | undefined = schema
  for (const key of path) {
    field = fieldBelow(field, key) ?? (/^\d+$/.test(key) ? field.item : undefined)
    if (field === undefined) break
    fields.push(field)
  }
  return fields
}
