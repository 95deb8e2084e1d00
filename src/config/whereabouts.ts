import { SetupError } from '../system/setup-error.ts'
import { decode, type Issue } from './decode.ts'
import { section, snakeCase, type ValueOf } from './field.ts'
import { adminField } from './listen-fields.ts'
import { nearestKey } from './nearest.ts'
import { tokensField } from './policy-fields.ts'
import { schema, stateDirField } from './schema.ts'
import { tlsField } from './tls-field.ts'
import { isMapping, valueAt, type YamlValue } from './yaml.ts'

const locating = section({ stateDir: stateDirField, tokens: tokensField, admin: adminField })
const KEYS = [...locating.keys.keys()]
const SECTIONS = [...schema.keys.keys()]

const certificate = section({ tls: tlsField })

/** The keys by which a command finds a running sidecar: its state folder and its admin listener. */
export interface Whereabouts extends Pick<ValueOf<typeof locating>, 'stateDir' | 'admin'> {
  /** Without `tls` if that key has a fault. */
  readonly listen: Partial<ValueOf<typeof certificate>>
}

/**
 * The error for a configuration with faults. If `whereabouts` is defined, no fault is in a key that locates the sidecar: a command can
 * still find a sidecar that runs on with the previous configuration.
 */
export class FaultyConfiguration extends SetupError {
  readonly whereabouts: Whereabouts | undefined

  constructor(problems: readonly string[], whereabouts: Whereabouts | undefined) {
    super(problems)
    this.whereabouts = whereabouts
  }
}

/** Where the sidecar is; undefined if one of the issues makes that uncertain. */
export function whereaboutsIn(tree: YamlValue, issues: readonly Issue[]): Whereabouts | undefined {
  // A file that is being written is empty for a moment.
  const isEmpty = !isMapping(tree) || Object.keys(tree).length === 0
  if (isEmpty || issues.some((issue) => mayLocate(issue, tree))) return undefined
  const found = decode(locating, only(tree, KEYS))
  if ('issues' in found) return undefined
  const { stateDir, admin } = found.value
  const served = decode(certificate, only(valueAt(tree, ['listen']) ?? {}, ['tls']))
  return { stateDir, admin, listen: 'value' in served ? served.value : {} }
}

/**
 * Whether a fault is in a key that locates the sidecar, or in an unknown key that may be meant as such a key. An unknown key that is like
 * no known key, such as `data_dir`, may be meant as the state folder or the admin listener, unless the file has both.
 */
function mayLocate({ path, isUnknown }: Issue, tree: YamlValue): boolean {
  // `admin.address` in one key is meant as a key of `admin`.
  const parts = path.flatMap((key) => key.split('.'))
  const [first = ''] = parts
  const last = parts.at(-1) ?? ''
  if (KEYS.includes(first)) return true
  if (isUnknown !== true) return false
  const isStated = ['state_dir', 'admin'].every((key) => valueAt(tree, [key]) !== undefined)
  const isAlien = !SECTIONS.includes(first) && nearestKey(snakeCase(first), SECTIONS) === undefined
  return [first, last].some(isNear) || (isAlien && !isStated)
}

function isNear(key: string): boolean {
  return nearestKey(snakeCase(key), KEYS) !== undefined
}

/** The tree with only these keys. */
function only(tree: YamlValue, keys: readonly string[]): YamlValue {
  if (!isMapping(tree)) return {}
  return Object.fromEntries(Object.entries(tree).filter(([key]) => keys.includes(key)))
}
