import { camelCase } from './field.ts'
import { kindOfPassword } from './password-fields.ts'
import type { Config } from './schema.ts'

interface RestartKeys {
  /** The keys, with all keys below them. They change together. */
  readonly keys: readonly string[]
  /** Whether the change from one configuration to the other needs a restart; default: every change. */
  readonly when?: (start: Config, next: Config) => boolean
  /** The changes that need a restart, in words, for the reference page. */
  readonly which?: string
}

/** The keys that no reload changes. A change of any other key takes effect at once. */
export const RESTART_KEYS: readonly RestartKeys[] = [
  { keys: ['listen.address', 'listen.redirect'] },
  // A listener speaks TLS or cleartext for as long as it is open.
  {
    keys: ['listen.tls'],
    when: (start, next) => (start.listen.tls === 'off') !== (next.listen.tls === 'off'),
    which: 'from or to `off`',
  },
  { keys: ['admin.address'] },
  { keys: ['admin.tls'] },
  // Tokens have the names of `passwords`, or none: then a limit by name would count all clients together. With `password.device`,
  // `upstream.auth` says how the device checks a password.
  {
    keys: ['password', 'passwords', 'upstream.auth', 'limits.api.per', 'limits.oauth.per'],
    when: (start, next) => kindOfPassword(start) !== kindOfPassword(next),
    which: 'from one of `password.file`, `.device`, `.socket` and `passwords` to another',
  },
  { keys: ['tokens.store'] },
  { keys: ['store'] },
  { keys: ['limits.store'] },
  { keys: ['state_dir'] },
]

/** The configuration that a reload with `next` puts into effect: the keys that need a restart have their values of `start`. */
export function appliedTo(start: Config, next: Config): Config {
  const waiting = RESTART_KEYS.filter(({ when = () => true }) => when(start, next)).flatMap(
    ({ keys }) => keys,
  )
  return waiting.reduce((applied, key) => {
    const path = key.split('.').map(camelCase)
    return withValue(applied, path, valueAt(start, path))
  }, next)
}

function valueAt(config: object, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, name) => Reflect.get(Object(value), name), config)
}

/** @param value of the same key in another configuration; undefined leaves the key out */
function withValue<T extends object>(config: T, [name = '', ...below]: readonly string[], value: unknown): T {
  const inner = Reflect.get(config, name)
  const next = below.length === 0 ? value : withValue(Object(inner), below, value)
  const { [name as keyof T]: _, ...others } = config
  // Proof of the cast: every section of the path is in every configuration, and the value is one of this key.
  return { ...others, ...(next === undefined ? {} : { [name]: next }) } as T
}
