import { type Field, fieldBelow } from './field.ts'
import { dottedKeys } from './known-keys.ts'
import { nearestKey } from './nearest.ts'
import { schema } from './schema.ts'
import { readText, type Setting, type Settings } from './setting.ts'
import type { Parsed, YamlValue } from './yaml-value.ts'

const FLAG_RANK = 3

type Target = Pick<Setting, 'path' | 'value'>

/** The settings of `--set key=value`, in the order given, so that a later one wins. */
export function readFlags(sets: readonly string[]): Settings {
  const settings: Setting[] = []
  const problems: string[] = []
  for (const set of sets) {
    const equals = set.indexOf('=')
    if (equals < 1) {
      // What stands there may be a value that belongs to nobody's eyes, so only its shape is named.
      problems.push('--set: must be key=value, such as --set limits.api.requests=120')
      continue
    }
    const key = set.slice(0, equals)
    const target = targetOf(key.split('.'), set.slice(equals + 1))
    if ('problem' in target) problems.push(`--set: ${key}: ${target.problem}`)
    else settings.push({ ...target.value, source: '--set', rank: FLAG_RANK })
  }
  return { settings, problems }
}

function targetOf(path: readonly string[], text: string): Parsed<Target> {
  const found = resolve(schema, path)
  if (found === undefined) {
    return { problem: `unknown key; ${nearestKey(path.join('.'), dottedKeys)}` }
  }
  if (found.field.kind === 'headers' && found.rest.length > 0) {
    return headerOf(found.path, found.rest, text)
  }
  const read = readText(found.field, text)
  return 'problem' in read ? read : { value: { path: found.path, value: read.value } }
}

interface Resolved {
  readonly field: Field<unknown>
  readonly path: readonly string[]
  /** What is left of the path below a mapping of headers. */
  readonly rest: readonly string[]
}

/** Finds the key; a name of the operator's own may hold dots, and ends where a key that is known can follow. */
function resolve(
  field: Field<unknown>,
  rest: readonly string[],
  path: readonly string[] = [],
): Resolved | undefined {
  if (rest.length === 0 || field.kind === 'headers') return { field, path, rest }
  const longest = field.kind === 'named' ? rest.length : 1
  for (let length = 1; length <= longest; length += 1) {
    const key = rest.slice(0, length).join('.')
    const below = fieldBelow(field, key)
    const found = below && resolve(below, rest.slice(length), [...path, key])
    if (found !== undefined) return found
  }
  return undefined
}

/** A header name may hold dots; only a last `.file` says that the value stands in a file. */
function headerOf(above: readonly string[], rest: readonly string[], text: string): Parsed<Target> {
  const fromFile = rest.length > 1 && rest.at(-1) === 'file'
  const name = (fromFile ? rest.slice(0, -1) : rest).join('.')
  if (name === '__proto__') return { problem: 'must not be used as a name' }
  const value: YamlValue = fromFile ? { file: text } : text
  return { value: { path: [...above, name], value } }
}
