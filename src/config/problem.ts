import { isIPv6 } from '../http/ip.ts'
import { escaped } from '../system/text.ts'
import { CONTROLS } from './address.ts'
import { decode, type Issue } from './decode.ts'
import type { Field } from './field.ts'
import { fieldsAlong } from './known-keys.ts'
import type { Layered } from './layers.ts'
import { nearestWord } from './nearest.ts'
import { ODD_BLANKS } from './odd-blanks.ts'
import { blankMissing, nearestTo, sectionsMeant, unknownKey } from './unknown-keys.ts'
import { valueAt, type YamlDocument, type YamlValue } from './yaml.ts'
import { gluedKey } from './yaml-faults.ts'

const LONGEST_SHOWN = 60

/** The file of a configuration, and the lines of its keys. */
interface FileLines extends Pick<YamlDocument, 'lineOf'> {
  readonly path: string
}

/**
 * One line per issue: the source of the value (with the line, if it is the file), the key, what is wrong, and the value. A key that is
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
  const lacking = unknown.flatMap((path) => sectionsMeant(path, tree))
  /** Whether the issue only follows from an unknown key. */
  const isConsequence = ({ path, isUnknown }: Issue): boolean => {
    if (isUnknown === true) return false
    const [here, isMissing] = [`${path.join('.')}.`, valueAt(tree, path) === undefined]
    if (isMissing && meant.some((key) => here.startsWith(`${key}.`))) return true
    return lacking.some((each) => here === `${each}.` || (isMissing && here.startsWith(`${each}.`)))
  }
  const causes = issues.filter((issue) => !isConsequence(issue))
  return causes.map(({ path, message, isUnknown }) => {
    const what = isUnknown ? unknownKey(path, tree) : describe(path, message, tree)
    return problemLine(locationOf(path, layered, file), path, what)
  })
}

/** One problem as a line: where the key is set, if that is known, the key, and what is wrong. */
function problemLine(location: string | undefined, path: readonly string[], what: string): string {
  return [location, path.join('.'), what].filter((part) => part !== undefined).join(': ')
}

/** Where the value of a key comes from; undefined for a default. */
export function locationOf(
  path: readonly string[],
  layered: Layered,
  file: FileLines | undefined,
): string | undefined {
  return layered.sourceOf(path) ?? (isDefault(path, layered.tree) ? undefined : lineIn(file, path))
}

/** `postern.yaml:7`, the form that editors and terminals open. */
function lineIn(file: FileLines | undefined, path: readonly string[]): string | undefined {
  const number = file?.lineOf(path)
  return number === undefined ? file?.path : `${file?.path}:${number}`
}

/** Whether the key is not set and has a default: then the problem is with the default. */
function isDefault(path: readonly string[], tree: YamlValue): boolean {
  const fields = fieldsAlong(path)
  const last = fields.length === path.length ? fields.at(-1) : undefined
  return last?.default !== undefined && last.kind !== 'section' && valueAt(tree, path) === undefined
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
