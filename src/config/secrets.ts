import { stat } from 'node:fs/promises'
import type { NeededPath } from '../system/permissions.ts'
import type { PasswordFile } from './auth-fields.ts'
import { type Field, fieldBelow } from './field.ts'
import { isClientName } from './header-field.ts'
import type { ConfigWarning, WarningRule } from './insecure-settings.ts'
import { passwordSources } from './password-fields.ts'
import { type Config, schema } from './schema.ts'
import { tokenStoreField } from './store-fields.ts'
import { ownPair } from './tls-field.ts'
import { type ServiceConfig, servicesOf } from './upstream-fields.ts'
import { isMapping, type YamlValue } from './yaml.ts'

const MASK = '***'

/**
 * The effective configuration in the form of the file: what is set, as it is written, and the defaults of the rest. It loads as the
 * same configuration, except for secrets, which are masked: the values of headers, and the password in the URL of a shared store.
 */
export function effectiveTree(tree: YamlValue, field: Field<unknown> = schema): YamlValue {
  if (field === tokenStoreField) return String(tree).replace(/(:\/\/[^:@/]*:)[^@/]+@/, `$1${MASK}@`)
  if (!isMapping(tree)) return tree
  if (field.kind === 'headers') {
    // The path of a secret is not secret.
    const shown = Object.entries(tree).map(([name, value]) => [name, isMapping(value) ? value : MASK])
    return Object.fromEntries(shown)
  }
  if (field.kind === 'value') return tree
  const keys = field.kind === 'named' ? Object.keys(tree) : field.keys.keys()
  const whole: Record<string, YamlValue> = {}
  for (const key of keys) {
    const inner = fieldBelow(field, key)
    const value = Object.hasOwn(tree, key) || inner?.optional ? tree[key] : inner?.default
    if (inner !== undefined && value !== undefined) whole[key] = effectiveTree(value, inner)
  }
  return whole
}

type SecretFile = Required<Pick<ConfigWarning, 'key' | 'file'>>

/** The rule of `exposedSecrets`. */
export const EXPOSURE_RULE: WarningRule = {
  about: 'a file with a secret that others can read, or that any user but its owner can write',
}

/**
 * Finds the files with secrets that users other than the owner and the group can read, or that any user but the owner can write. Read
 * permission for the group is normal (root:postern, 0640). The owner is not checked, because a user namespace shows a mapped owner.
 * A file whose mode cannot be read is skipped: the code that reads the file reports it.
 */
export async function exposedSecrets(config: Config): Promise<readonly ConfigWarning[]> {
  const looks = secretFiles(config).map(async (secret) => {
    const found = await stat(secret.file).catch(() => undefined)
    // A folder in place of the file is another fault: `chmod` would lock its owner out.
    const reason = found?.isFile() === true ? exposureOf(found.mode) : ''
    const meaning = 'accounts that do not need the file can read or replace it'
    const message = 'a file with a secret is open to other users'
    return reason === '' ? [] : [{ ...secret, reason, meaning, remedy: `chmod 0640 ${secret.file}`, message }]
  })
  return (await Promise.all(looks)).flat()
}

const EXPOSURES: readonly (readonly [bit: number, reason: string])[] = [
  [0o004, 'others can read it'],
  [0o002, 'others can write it'],
  [0o020, 'its group can write it'],
]

/** Why the mode of a file with a secret is too open; empty if it is not. */
export function exposureOf(mode: number): string {
  return EXPOSURES.filter(([bit]) => (mode & bit) !== 0)
    .map(([, reason]) => reason)
    .join(', ')
}

/** Every file that holds a secret, with the key that names it. */
export function secretFiles(config: Config): readonly SecretFile[] {
  const { admin, listen, upstream, store } = config
  const files: SecretFile[] = passwordSources(config).map(({ key, file }) => ({ key, file }))
  if (admin.passwordFile !== undefined) files.push({ key: 'admin.password_file', file: admin.passwordFile })
  const own = ownPair(listen.tls)
  if (own !== undefined) files.push({ key: 'listen.tls.key', file: own.key })
  if (store.passwordFile !== undefined) files.push({ key: 'store.password_file', file: store.passwordFile })
  return files.concat(
    servicesOf(upstream).flatMap(({ path, service }) => secretFilesOf(path.join('.'), service)),
  )
}

function secretFilesOf(above: string, { headers, auth, tls }: ServiceConfig): SecretFile[] {
  const files: SecretFile[] = []
  if (tls.key !== undefined) files.push({ key: `${above}.tls.key`, file: tls.key })
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string' && !isClientName(value))
      files.push({ key: `${above}.headers.${name}.file`, file: value.file })
  }
  if (auth === 'off') return files
  for (const [kind, { password }] of Object.entries<{ readonly password?: PasswordFile }>(auth)) {
    if (password !== undefined) {
      files.push({ key: `${above}.auth.${kind}.password.file`, file: password.file })
    }
  }
  return files
}

/** What a sidecar with this configuration needs: every file and folder that it reads, watches or writes, and a thread for some hashes. */
export function neededPermissions(config: Config): readonly (NeededPath | 'thread')[] {
  const { listen, admin, stateDir, store } = config
  const sockets = [listen.address, admin.address].flatMap((address) =>
    address !== 'off' && address.kind === 'unix' ? [address.path] : [],
  )
  return [
    ...[secretFiles(config).map(({ file }) => file), certificateFiles(config), store.tls.ca ?? []]
      .flat()
      .map((path) => ({ path, kind: 'file', write: false }) as const),
    ...sockets.map((path) => ({ path, kind: 'file', write: true }) as const),
    { path: stateDir, kind: 'folder', write: true },
    // Of their hashes, JavaScript computes nearly all.
    ...(passwordSources(config).some(({ user }) => user !== undefined) ? (['thread'] as const) : []),
  ]
}

/** The certificates and keys that a reload reads again: of the public listener and towards the device. */
export function certificateFiles({ listen, upstream }: Config): readonly string[] {
  const own = ownPair(listen.tls)
  const services = servicesOf(upstream).flatMap(({ service: { tls } }) => [tls.ca, tls.cert, tls.key])
  return [own?.cert, own?.key, ...services].filter((path) => path !== undefined)
}
