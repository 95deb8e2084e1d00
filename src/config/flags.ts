import { type Field, fieldBelow } from './field.ts'
import { dottedKeys } from './known-keys.ts'
import { nearestKey } from './nearest.ts'
import type { Parsed } from './parsed.ts'
import { schema } from './schema.ts'
import { readText, type Setting, type Settings } from './setting.ts'
import type { YamlValue } from './yaml-value.ts'

export const FLAG_RANK = 3

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
  let field: Field<unknown> = schema
  for (const [index, key] of path.entries()) {
    if (field.kind === 'headers') return headerOf(path.slice(0, index), path.slice(index), text)
    const next = fieldBelow(field, key)
    if (next === undefined) return { problem: `unknown key; ${nearestKey(path.join('.'), dottedKeys)}` }
    field = next
  }
  const read = readText(field, text)
  return 'problem' in read ? read : { value: { path, value: read.value } }
}

/** A header name may hold dots; only a last `.file` says that the value stands in a file. */
function headerOf(above: readonly string[], rest: readonly string[], text: string): Parsed<Target> {
  const fromFile = rest.length > 1 && rest.at(-1) === 'file'
  const name = (fromFile ? rest.slice(0, -1) : rest).join('.')
  if (name === '__proto__') return { problem: 'must not be used as a name' }
  const value: YamlValue = fromFile ? { file: text } : text
  return { value: { path: [...above, name], value } }
}
