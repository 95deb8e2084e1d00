import { type Field, fieldBelow } from './field.ts'
import { dottedKeys, environmentName, knownKeys } from './known-keys.ts'
import { adviceOn, nearestKey, nearestVariable } from './nearest.ts'
import { schema } from './schema.ts'
import { type Parsed, parseYaml, type YamlValue } from './yaml.ts'

/** One value from outside the file. `rank` is the precedence of its source: a higher one replaces a lower one. */
export interface Override {
  readonly path: readonly string[]
  readonly value: YamlValue
  readonly source: string
  readonly rank: number
}

interface Overrides {
  readonly overrides: readonly Override[]
  readonly problems: readonly string[]
}

export type Environment = Readonly<Record<string, string | undefined>>

/** The file has a higher rank than systemd's variable, which only proposes a directory. */
const SYSTEMD_RANK = 0
const ENVIRONMENT_RANK = 2
const FLAG_RANK = 3

/** Variables of the command line and of the tests, which are not keys of the file. */
const OTHER_NAMES = /^POSTERN_(?:CONFIG$|TEST_)/

/**
 * Whether Kubernetes set the variable. Kubernetes puts the address of each Service of the namespace into every container,
 * under names derived from the Service name: for one called `postern` or `postern-metrics` they begin with `POSTERN_`. The
 * value distinguishes `..._PORT` from a misspelled key: Kubernetes sets a URL, such as `tcp://10.0.0.1:443`.
 */
function isFromKubernetes(name: string, value: string): boolean {
  if (/^POSTERN(?:_\w+)?_SERVICE_(?:HOST|PORT(?:_\w+)?)$/.test(name)) return true
  if (/^POSTERN(?:_\w+)?_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(name)) return true
  return /^POSTERN(?:_\w+)?_PORT$/.test(name) && /^(?:tcp|udp|sctp):\/\//.test(value)
}

/** The overrides in the environment, sorted by name, so that a section comes before its keys. */
export function readEnvironment(environment: Environment): Overrides {
  const overrides: Override[] = []
  const problems: string[] = []
  const names = Object.keys(environment).filter(
    (name) => name.startsWith('POSTERN_') && !OTHER_NAMES.test(name),
  )
  if (names.length === 0) return { overrides, problems }
  const keys = new Map(knownKeys().map((known) => [environmentName(known.path), known]))
  for (const name of names.sort()) {
    const value = environment[name]
    if (value === undefined) continue
    const known = keys.get(name)
    if (known === undefined) {
      if (!isFromKubernetes(name, value))
        problems.push(`${name}: unknown variable; ${adviceOn(nearestVariable(name, [...keys.keys()]))}`)
      continue
    }
    const parsed = parseText(known.field, value)
    if ('problem' in parsed) problems.push(`${name}: ${known.path.join('.')}: ${parsed.problem}`)
    else overrides.push({ path: known.path, value: parsed.value, source: name, rank: ENVIRONMENT_RANK })
  }
  return { overrides, problems }
}

/** `state_dir` from systemd's STATE_DIRECTORY; the first directory if the unit names several. */
export function stateDirectory(environment: Environment): readonly Override[] {
  const [value = ''] = (environment.STATE_DIRECTORY ?? '').split(':', 1)
  if (value === '') return []
  return [{ path: ['state_dir'], value, source: 'STATE_DIRECTORY', rank: SYSTEMD_RANK }]
}

/** The overrides of `--set key=value`, in the order of the command line: a later one replaces an earlier one. */
export function readFlags(sets: readonly string[]): Overrides {
  const overrides: Override[] = []
  const problems: string[] = []
  for (const set of sets) {
    const equals = set.indexOf('=')
    if (equals < 1) {
      // Not quoted: the text may be a secret value whose key was forgotten.
      problems.push('--set: must be key=value, such as --set limits.api.requests=120')
      continue
    }
    const key = set.slice(0, equals)
    const target = targetOf(key.split('.'), set.slice(equals + 1))
    if ('problem' in target) problems.push(`--set: ${key}: ${target.problem}`)
    else overrides.push({ ...target.value, source: '--set', rank: FLAG_RANK })
  }
  return { overrides, problems }
}

type Target = Pick<Override, 'path' | 'value'>

function targetOf(path: readonly string[], text: string): Parsed<Target> {
  const found = resolve(schema, path)
  if (found === undefined) {
    return { problem: `unknown key; ${adviceOn(nearestKey(path.join('.'), dottedKeys()))}` }
  }
  if (found.field.kind === 'headers' && found.rest.length > 0) {
    return headerOf(found.path, found.rest, text)
  }
  const parsed = parseText(found.field, text)
  return 'problem' in parsed ? parsed : { value: { path: found.path, value: parsed.value } }
}

interface Resolved {
  readonly field: Field<unknown>
  readonly path: readonly string[]
  /** The rest of the path, below a mapping of headers. */
  readonly rest: readonly string[]
}

/**
 * Finds the field of a dotted path. The operator's own names may contain dots, so the path is tried with a name of one part, two
 * parts, and so on.
 */
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

/** A header name may contain dots; only `.file` at the end has a meaning: the text is the path of a file. `null` leaves the field out. */
function headerOf(above: readonly string[], rest: readonly string[], text: string): Parsed<Target> {
  const fromFile = rest.length > 1 && rest.at(-1) === 'file'
  const name = (fromFile ? rest.slice(0, -1) : rest).join('.')
  if (name === '__proto__') return { problem: 'must not be used as a name' }
  const value: YamlValue = fromFile ? { file: text } : text === 'null' ? null : text
  return { value: { path: [...above, name], value } }
}

/** The text of a variable or flag as the YAML value that the field expects. */
function parseText(field: Field<unknown>, text: string): Parsed<YamlValue> {
  if (field.textForm === 'text') return { value: text }
  if (field.textForm === 'yaml' || text.trim().startsWith('[')) return parseYaml(text)
  const members = text.split(',').map((member) => member.trim())
  return { value: members.filter((member) => member !== '') }
}
