import { decode } from './decode.ts'
import { flow } from './first-configuration.ts'
import { dottedKeys, fieldsAlong } from './known-keys.ts'
import { adviceOn, nearestKey } from './nearest.ts'
import { isMapping, valueAt, type YamlValue } from './yaml.ts'
import { gluedKey } from './yaml-faults.ts'

type Path = readonly string[]

/** The message about an unknown key: what is wrong with it, and what to write in its place. */
export function unknownKey(path: Path, tree: YamlValue): string {
  const glued = gluedKey(path.at(-1) ?? '')
  if (glued !== undefined) return `unknown key; ${blankMissing(glued)}`
  const above = emptyAbove(path, tree)
  if (above !== undefined) return `begins in the same column as ${above.at(-1)}, whose key it is; indent it`
  const [meant] = path.at(-1)?.includes('.') ? [meantBy(path)] : []
  return meant === undefined ? `unknown key; ${adviceOn(nearestTo(path))}` : nested(path, meant, tree)
}

/**
 * The sections, in dotted form, that an unknown key belongs to because it is not indented or has dots. A key that these sections lack is no
 * further problem, because it may be the unknown one.
 */
export function sectionsMeant(path: Path, tree: YamlValue): readonly string[] {
  const above = emptyAbove(path, tree)
  return [
    ...(above === undefined ? [] : [above.join('.')]),
    ...(path.at(-1)?.includes('.') ? ancestorsOf(meantBy(path)) : []),
  ]
}

/** The known key that the unknown key at `path` probably means; `undefined` if none is near. */
export function nearestTo(path: Path): string | undefined {
  const fields = fieldsAlong(path)
  // A member of the operator's own name and an entry of a list have keys of their own.
  const own = fields.findLastIndex(({ member, item }) => (member ?? item) !== undefined)
  const inner = fields[own + 1]
  const known = own < 0 || inner === undefined ? dottedKeys() : dottedKeys(inner, path.slice(0, own + 2))
  return nearestKey(path.join('.'), known)
}

/** The message about a colon without a blank behind it, which YAML takes for a part of the key. */
export const blankMissing = (key: string): string => `a blank is missing behind \`${key}:\``

/** The path that a key with dots means, such as `limits.api` in a file. `--set` and messages have keys in this form; a file nests them. */
function meantBy(path: Path): Path | undefined {
  const written = [...path.slice(0, -1), ...(path.at(-1) ?? '').split('.')]
  const fields = fieldsAlong(written)
  const isKnown = fields.length === written.length || fields.at(-1)?.kind === 'headers'
  if (isKnown) return written
  const meant = nearestTo(path)?.split('.')
  const isBelow = path.slice(0, -1).every((key, at) => meant?.[at] === key)
  return isBelow && meant?.length === written.length ? meant : undefined
}

/**
 * The line to write in place of a key with dots. `...` stands for a value that may be secret, is a mapping, or would be wrong there, too.
 */
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
 * The path of the empty section that the unknown key at `path` belongs to: the key follows the section in the same column. Other keys with
 * the same mistake may stand between the two.
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

const ancestorsOf = (path: Path = []): readonly string[] =>
  path.slice(0, -1).map((_, length) => path.slice(0, length + 1).join('.'))
