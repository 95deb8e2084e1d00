import { environmentName, knownKeys } from './known-keys.ts'
import { nearestName } from './nearest.ts'
import { readText, type Setting, type Settings } from './setting.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** The systemd variable is weaker than a file: it only says where state may be kept. */
const WEAKEST = 0
const ENVIRONMENT_RANK = 2

const KEY_OF: ReadonlyMap<string, (typeof knownKeys)[number]> = new Map(
  knownKeys.map((known) => [environmentName(known.path), known]),
)

/** Read by the command line and by the tests, not keys of the file. */
const OTHER_NAMES = /^POSTERN_(?:CONFIG$|TEST_)/

/**
 * Kubernetes puts the address of every Service of the namespace into every container, under names made from the name
 * of the Service. One called `postern` (or `postern-metrics`) gives names that begin as ours do and that nobody set
 * on purpose. `..._PORT` is told from a mistaken key by its value, which is a URL: `tcp://10.0.0.1:443`.
 */
function isInjected(name: string, value: string): boolean {
  if (/^POSTERN(?:_\w+)?_SERVICE_(?:HOST|PORT(?:_\w+)?)$/.test(name)) return true
  if (/^POSTERN(?:_\w+)?_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(name)) return true
  return /^POSTERN(?:_\w+)?_PORT$/.test(name) && /^(?:tcp|udp|sctp):\/\//.test(value)
}

/** The settings in the environment. Names are sorted, so that a section comes before the keys in it. */
export function readEnvironment(environment: Environment): Settings {
  const settings: Setting[] = []
  const problems: string[] = []
  for (const name of Object.keys(environment).sort()) {
    const value = environment[name]
    if (value === undefined || !name.startsWith('POSTERN_') || OTHER_NAMES.test(name)) continue
    const known = KEY_OF.get(name)
    if (known === undefined) {
      if (!isInjected(name, value)) problems.push(`${name}: unknown variable; ${nearestName(name, NAMES)}`)
      continue
    }
    const read = readText(known.field, value)
    if ('problem' in read) problems.push(`${name}: ${known.path.join('.')}: ${read.problem}`)
    else settings.push({ path: known.path, value: read.value, source: name, rank: ENVIRONMENT_RANK })
  }
  return { settings, problems }
}

/** Where systemd says that state belongs; the first directory, if the unit names several. */
export function stateDirectory(environment: Environment): readonly Setting[] {
  const [value = ''] = (environment.STATE_DIRECTORY ?? '').split(':', 1)
  if (value === '') return []
  return [{ path: ['state_dir'], value, source: 'STATE_DIRECTORY', rank: WEAKEST }]
}

const NAMES: readonly string[] = [...KEY_OF.keys()]
