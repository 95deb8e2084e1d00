import { isIPv6 } from '../http/ip.ts'
import { escaped } from '../system/escaped.ts'
import { CONTROLS } from './address.ts'
import { decode, type Issue } from './decode.ts'
import { type Field, fieldBelow } from './field.ts'
import { flow } from './first-configuration.ts'
import { dottedKeys } from './known-keys.ts'
import type { Layered } from './layers.ts'
import { adviceOn, nearestKey, nearestWord } from './nearest.ts'
import { ODD_BLANKS } from './odd-blanks.ts'
import { schema } from './schema.ts'
import { isMapping, valueAt, type YamlDocument, type YamlValue } from './yaml.ts'
import { gluedKey } from './yaml-faults.ts'

const LONGEST_SHOWN = 60

/** The file of a configuration, and the lines of its keys. */
export interface FileLines extends Pick<YamlDocument, 'lineOf'> {
  readonly path: string
}

/**
 * One line per issue: the source of the value (of the file also the line), the key, what is wrong, and the value. A key that is
 * missing because it is misspelt is one problem, not two.
 */
export function problemsOf(
  issues: readonly Issue[],
  layered: Layered,
  file: FileLines | undefined,
): readonly string[] {
  const { tree } = layered
  const unknown = issues.filter(({ isUnknown }) => isUnknown).map(({ path }) => path)
  const meant = unknown.flatMap((path) => nearestTo(path) ?? [])
  /** Sections whose missing keys stand in another place of the file, so that they are no problem of their own. */
  const lacking = unknown.flatMap((path) => [
    ...[emptyAbove(path, tree)?.join('.') ?? []].flat(),
    ...(path.at(-1)?.includes('.') ? ancestorsOf(meantBy(path)) : []),
  ])
  const follows = ({ path, isUnknown }: Issue): boolean => {
    if (isUnknown === true) return false
    const [here, isMissing] = [`${path.join('.')}.`, valueAt(tree, path) === undefined]
    if (isMissing && meant.some((key) => here.startsWith(`${key}.`))) return true
    return lacking.some((each) => here === `${each}.` || (isMissing && here.startsWith(`${each}.`)))
  }
  const told = issues.filter((issue) => !follows(issue))
  return told.map(({ path, message, isUnknown }) => {
    const what = isUnknown ? unknownKey(path, tree) : describe(path, message, tree)
    return problemLine(locationOf(path, layered, file), path, what)
  })
}

/** One problem as a line: where the key is set, if that is known, the key, and what is wrong. */
export function problemLine(location: string | undefined, path: readonly string[], what: string): string {
  return [location, path.join('.'), what].filter((part) => part !== undefined).join(': ')
}

function unknownKey(path: readonly string[], tree: YamlValue): string {
  const glued = gluedKey(path.at(-1) ?? '')
  if (glued !== undefined) return `unknown key; ${blankMissing(glued)}`
  const above = emptyAbove(path, tree)
  if (above !== undefined) return `begins in the same column as ${above.at(-1)}, whose key it is; indent it`
  const [meant] = path.at(-1)?.includes('.') ? [meantBy(path)] : []
  return meant === undefined ? `unknown key; ${adviceOn(nearestTo(path))}` : nested(path, meant, tree)
}

type Path = readonly string[]

/** The path that a key with dots means, such as `limits.api` in a file. `--set` and the messages write keys so, a file nests them. */
function meantBy(path: Path): Path | undefined {
  const written = [...path.slice(0, -1), ...(path.at(-1) ?? '').split('.')]
  const fields = fieldsAlong(written)
  const isKnown = fields.length === written.length || fields.at(-1)?.kind === 'headers'
  if (isKnown) return written
  const meant = nearestTo(path)?.split('.')
  const isBelow = path.slice(0, -1).every((key, at) => meant?.[at] === key)
  return isBelow && meant?.length === written.length ? meant : undefined
}

const ancestorsOf = (path: Path = []): readonly string[] =>
  path.slice(0, -1).map((_, length) => path.slice(0, length + 1).join('.'))

/** What to write in place of a key with dots. `...` stands for a value that may be secret, is a mapping, or would be wrong there, too. */
function nested(path: Path, meant: Path, tree: YamlValue): string {
  const value = valueAt(tree, path)
  const fields = fieldsAlong(meant)
  const field = fields.length === meant.length ? fields.at(-1) : undefined
  const isScalar = value !== undefined && (typeof value !== 'object' || value === null)
  const isSaid =
    isScalar && field !== undefined && !fields.some(({ secret }) => secret) && 'value' in decode(field, value)
  /** The number of sections on the path that the file already has. */
  let present = 0
  while (present < meant.length - 1 && isMapping(valueAt(tree, meant.slice(0, present + 1)))) present += 1
  const missing = meant.slice(present)
  const written = missing.reduceRight<YamlValue>((inner, key) => ({ [key]: inner }), isSaid ? value : '...')
  const line = flow(written).slice(1, -1).replace('"..."', '...')
  const where = present === 0 ? '' : ` below ${meant.slice(0, present).join('.')}`
  return `a key of the file has no dots; write ${line}${where}`
}

/**
 * The path of the empty section that the unknown key at `path` belongs to. Such a key stands below its section in the same column. Others that
 * are misplaced in the same way may stand between them.
 */
function emptyAbove(path: Path, tree: YamlValue): Path | undefined {
  const parent = path.slice(0, -1)
  const mapping = valueAt(tree, parent)
  if (!isMapping(mapping)) return undefined
  const keys = Object.keys(mapping)
  const [key = ''] = path.slice(-1)
  for (const above of keys.slice(0, keys.indexOf(key)).reverse()) {
    const section = [...parent, above]
    const fields = fieldsAlong(section)
    if (fields.length < section.length) continue
    const value = valueAt(tree, section)
    const isEmpty = value === null || (isMapping(value) && Object.keys(value).length === 0)
    return isEmpty && fields.at(-1)?.keys.has(key) === true ? section : undefined
  }
  return undefined
}

const blankMissing = (key: string): string => `a blank is missing behind \`${key}:\``

/** Where the value of a key comes from; undefined for a default. */
export function locationOf(
  path: readonly string[],
  layered: Layered,
  file: FileLines | undefined,
): string | undefined {
  return layered.sourceOf(path) ?? (isDefault(path, layered.tree) ? undefined : lineIn(file, path))
}

/** `postern.yaml:7`, the form that editors and terminals open. */
export function lineIn(file: FileLines | undefined, path: readonly string[]): string | undefined {
  const number = file?.lineOf(path)
  return number === undefined ? file?.path : `${file?.path}:${number}`
}

/** Whether the key is not set and has a default: a problem with it is then one of the default. */
function isDefault(path: readonly string[], tree: YamlValue): boolean {
  const fields = fieldsAlong(path)
  const last = fields.length === path.length ? fields.at(-1) : undefined
  return last?.default !== undefined && last.kind !== 'section' && valueAt(tree, path) === undefined
}

/** The known key that an unknown one probably means; `undefined` if none is near. */
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
  if (Array.isArray(value) && value.length === 1 && isIPv6(String(value[0])))
    return 'put it in quotes, because a bracket begins a list'
  const { words = [] } = field
  const word = typeof value === 'string' && !words.includes(value) ? nearestWord(value, words) : undefined
  if (word !== undefined) return `did you mean ${word}?`
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
  const shown = JSON.stringify(
    harmless.length > LONGEST_SHOWN ? `${harmless.slice(0, LONGEST_SHOWN)}…` : harmless,
  )
  return escaped(escaped(shown, CONTROLS), ODD_BLANKS)
}
