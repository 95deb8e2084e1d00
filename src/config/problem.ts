import type { Issue } from './decode.ts'
import { type Field, fieldBelow } from './field.ts'
import { dottedKeys, dottedKeysBelow, nearestKey } from './known-keys.ts'
import type { Layered } from './layers.ts'
import { schema } from './schema.ts'
import { valueAt, type YamlDocument, type YamlValue } from './yaml.ts'

const LONGEST_SHOWN = 60

/** The file that a configuration is read from, and the lines of its keys. */
export interface FilePlaces extends Pick<YamlDocument, 'lineOf'> {
  readonly path: string
}

/** One line per issue: the source of the value (of the file also the line), the key, what is wrong, and the value. */
export function problemsOf(
  issues: readonly Issue[],
  layered: Layered,
  file: FilePlaces | undefined,
): readonly string[] {
  return issues.flatMap((issue) => {
    if (issue.unknown.length === 0) return [line(issue.path, describe(issue, layered.tree), layered, file)]
    return issue.unknown.map((key) => {
      const path = [...issue.path, key]
      return line(path, `unknown key; ${adviceFor(path)}`, layered, file)
    })
  })
}

function line(path: readonly string[], what: string, layered: Layered, file: FilePlaces | undefined): string {
  const source = layered.sourceOf(path) ?? (isDefault(path, layered.tree) ? undefined : placeIn(file, path))
  return [source, path.join('.'), what].filter((part) => part !== undefined).join(': ')
}

/** `postern.yaml:7`, the form that editors and terminals open. */
function placeIn(file: FilePlaces | undefined, path: readonly string[]): string | undefined {
  const number = file?.lineOf(path)
  return number === undefined ? file?.path : `${file?.path}:${number}`
}

/** Whether the key is not set, so that its default is in conflict. */
function isDefault(path: readonly string[], tree: YamlValue): boolean {
  const fields = fieldsAlong(path)
  return (
    fields.length === path.length && fields.at(-1)?.default !== undefined && valueAt(tree, path) === undefined
  )
}

function adviceFor(path: readonly string[]): string {
  if (fieldsAlong(path).some(({ kind }) => kind === 'headers')) return 'a header takes text or {file: path}'
  const fields = fieldsAlong(path)
  const names = fields.findIndex(({ kind }) => kind === 'named')
  const member = fields[names + 1]
  const known =
    names < 0 || member === undefined ? dottedKeys : dottedKeysBelow(path.slice(0, names + 2), member)
  return nearestKey(path.join('.'), known)
}

function describe({ path, message }: Issue, tree: YamlValue): string {
  const value = valueAt(tree, path)
  if (isDefault(path, tree)) return `${message} (by default: ${fieldsAlong(path).at(-1)?.default})`
  if (value === undefined) return `is missing; it ${message}`
  const shown = fieldsAlong(path).some(({ secret }) => secret) ? undefined : show(value)
  return shown === undefined ? message : `${message} (given: ${shown})`
}

/** The fields along a path, up to the first unknown key. */
function fieldsAlong(path: readonly string[]): readonly Field<unknown>[] {
  const fields: Field<unknown>[] = []
  let field: Field<unknown> | undefined = schema
  for (const key of path) {
    field = fieldBelow(field, key)
    if (field === undefined) break
    fields.push(field)
  }
  return fields
}

/** The value as text: scalars only, shortened, without the part before an `@`, which may be a password in a URL. */
function show(value: YamlValue): string | undefined {
  if (typeof value === 'object' && value !== null) return undefined
  if (typeof value !== 'string') return String(value)
  const at = value.lastIndexOf('@')
  const harmless = at === -1 ? value : `***${value.slice(at)}`
  return JSON.stringify(harmless.length > LONGEST_SHOWN ? `${harmless.slice(0, LONGEST_SHOWN)}…` : harmless)
}
