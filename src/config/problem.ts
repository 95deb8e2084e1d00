import { type Field, fieldBelow, z } from './field.ts'
import { adviceOn, dottedKeys, nearestKey } from './known-keys.ts'
import type { Layered } from './layers.ts'
import { schema } from './schema.ts'
import { valueAt, type YamlDocument, type YamlValue } from './yaml.ts'
import { gluedKey } from './yaml-faults.ts'

const LONGEST_SHOWN = 60

/** The file that a configuration is read from, and the lines of its keys. */
export interface FilePlaces extends Pick<YamlDocument, 'lineOf'> {
  readonly path: string
}

/**
 * One line per issue: the source of the value (of the file also the line), the key, what is wrong, and the value. A key that is
 * missing because it is misspelt is one problem, not two.
 */
export function problemsOf(
  issues: readonly Issue[],
  layered: Layered,
  file: FilePlaces | undefined,
): readonly string[] {
  const { tree } = layered
  const meant = issues.flatMap(({ path, isUnknown }) => (isUnknown ? (nearestTo(path) ?? []) : []))
  const follows = ({ path, isUnknown }: Issue): boolean =>
    isUnknown !== true &&
    valueAt(tree, path) === undefined &&
    meant.some((key) => `${path.join('.')}.`.startsWith(`${key}.`))
  const told = issues.filter((issue) => !follows(issue))
  return told.map(({ path, message, isUnknown }) => {
    const what = isUnknown ? unknownKey(path) : describe(path, message, tree)
    return [locationOf(path, layered, file), path.join('.'), what]
      .filter((part) => part !== undefined)
      .join(': ')
  })
}

function unknownKey(path: readonly string[]): string {
  const glued = gluedKey(path.at(-1) ?? '')
  const advice = glued === undefined ? adviceOn(nearestTo(path)) : blankMissing(glued)
  return `unknown key; ${advice}`
}

const blankMissing = (key: string): string => `a blank is missing behind \`${key}:\``

/** Where the value of a key comes from; undefined for a default. */
export function locationOf(
  path: readonly string[],
  layered: Layered,
  file: FilePlaces | undefined,
): string | undefined {
  return layered.sourceOf(path) ?? (isDefault(path, layered.tree) ? undefined : placeIn(file, path))
}

/** `postern.yaml:7`, the form that editors and terminals open. */
function placeIn(file: FilePlaces | undefined, path: readonly string[]): string | undefined {
  const number = file?.lineOf(path)
  return number === undefined ? file?.path : `${file?.path}:${number}`
}

/** Whether the key is not set, so that its default is in conflict. */
function isDefault(path: readonly string[], tree: YamlValue): boolean {
  const fields = fieldsAlong(path)
  const last = fields.length === path.length ? fields.at(-1) : undefined
  return last?.default !== undefined && last.kind !== 'section' && valueAt(tree, path) === undefined
}

/** The key that is meant. */
function nearestTo(path: readonly string[]): string | undefined {
  const fields = fieldsAlong(path)
  const names = fields.findIndex(({ kind }) => kind === 'named')
  const member = fields[names + 1]
  const known =
    names < 0 || member === undefined ? dottedKeys() : dottedKeys(member, path.slice(0, names + 2))
  return nearestKey(path.join('.'), known)
}

function describe(path: readonly string[], message: string, tree: YamlValue): string {
  const value = valueAt(tree, path)
  const fields = fieldsAlong(path)
  const field = fields.length === path.length ? fields.at(-1) : undefined
  if (isDefault(path, tree)) return `${message} (by default: ${field?.default})`
  const advice = value === undefined || field === undefined ? undefined : adviceOnValue(field, value)
  const whole = [value === undefined ? `is missing; it ${message}` : message, advice ?? field?.advice]
    .filter((part) => part !== undefined)
    .join('; ')
  const shown = value === undefined || fields.some(({ secret }) => secret) ? undefined : show(value)
  return shown === undefined ? whole : `${whole} (given: ${shown})`
}

/**
 * YAML reads `0123` as a number and `true` as a truth value: text that looks like one needs quotes. It reads `url:x` as text: with a blank,
 * that is a key of the section.
 */
function adviceOnValue(field: Field<unknown>, value: YamlValue): string | undefined {
  const glued = typeof value === 'string' ? gluedKey(value) : undefined
  if (glued !== undefined && field.keys.has(glued)) return blankMissing(glued)
  const isOther = typeof value === 'number' || typeof value === 'boolean'
  return isOther && 'value' in decode(field, String(value)) ? 'put it in quotes' : undefined
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

/** One problem with the value at `path`, or that its last key is unknown. */
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
