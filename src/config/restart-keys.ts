import { camelCase } from './field.ts'
import { checkedByDevice } from './password-fields.ts'
import type { Config } from './schema.ts'

interface RestartKey {
  /** The key, with all keys below it. */
  readonly key: string
  /** Whether the change from one value to the other needs a restart; default: every change. */
  readonly when?: (before: unknown, after: unknown, start: Config, next: Config) => boolean
  /** The changes that need a restart, in words, for the reference page. */
  readonly which?: string
}

/** The keys that no reload changes. A change of any other key takes effect at once. */
export const RESTART_KEYS: readonly RestartKey[] = [
  { key: 'listen.address' },
  // A listener speaks TLS or cleartext for as long as it is open.
  {
    key: 'listen.tls',
    when: (before, after) => before === 'off' || after === 'off',
    which: 'from or to `off`',
  },
  { key: 'listen.memory' },
  { key: 'admin.address' },
  { key: 'admin.tls' },
  {
    key: 'admin.password_file',
    when: (before, after) => before === undefined || after === undefined,
    which: 'to set it, or to remove it',
  },
  // With `password.device` this key tells how the device checks a password, so both keys wait for the same restart.
  {
    key: 'upstream.auth',
    when: (_before, _after, start, next) => checkedByDevice(start) !== checkedByDevice(next),
    which: 'while `password.device` waits for a restart',
  },
  { key: 'password', when: isOtherKind, which: 'from or to `passwords`, and from or to `device`' },
  { key: 'passwords', when: isOtherKind, which: 'from or to `password`' },
  { key: 'tokens.store' },
  { key: 'store' },
  { key: 'limits.store' },
  { key: 'state_dir' },
]

/** The configuration that a reload with `next` puts into effect: the keys that need a restart have their values of `start`. */
export function appliedTo(start: Config, next: Config): Config {
  return RESTART_KEYS.reduce((applied, { key, when = () => true }) => {
    const path = key.split('.').map(camelCase)
    const before = valueAt(start, path)
    return when(before, valueAt(next, path), start, next) ? withValue(applied, path, before) : applied
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

/**
 * Whether the kind of source differs. Tokens have the names of `passwords`, or none; with `password.device` only the device knows the
 * users.
 */
function isOtherKind(before: unknown, after: unknown): boolean {
  const kindOf = (value: unknown): string =>
    value === undefined ? 'none' : 'device' in Object(value) ? 'device' : 'file'
  return kindOf(before) !== kindOf(after)
}
