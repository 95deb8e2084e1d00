import { dirname } from 'node:path'
import type { NeededPath } from '../system/permissions.ts'
import { isClientName } from './header-field.ts'
import { passwordSources, socketOfHook } from './password-fields.ts'
import type { Config } from './schema.ts'
import { ownPair } from './tls-field.ts'
import { type ServiceConfig, servicesOf } from './upstream-fields.ts'

/** A file, and the configuration key that names it. */
export interface NamedFile {
  readonly key: string
  readonly file: string
}

/** Every file of the configuration that holds a secret. */
export function secretFiles(config: Config): readonly NamedFile[] {
  const { admin, listen, upstream, store } = config
  const files: NamedFile[] = passwordSources(config).map(({ key, file }) => ({ key, file }))
  if (admin.passwordFile !== undefined) files.push({ key: 'admin.password_file', file: admin.passwordFile })
  const own = ownPair(listen.tls)
  if (own !== undefined) files.push({ key: 'listen.tls.key', file: own.key })
  if (store.passwordFile !== undefined) files.push({ key: 'store.password_file', file: store.passwordFile })
  return files.concat(
    servicesOf(upstream).flatMap(({ path, service }) => secretFilesOf(path.join('.'), service)),
  )
}

function secretFilesOf(above: string, { headers, auth, tls }: ServiceConfig): NamedFile[] {
  const files: NamedFile[] = []
  if (tls.key !== undefined) files.push({ key: `${above}.tls.key`, file: tls.key })
  for (const [name, value] of Object.entries(headers)) {
    if (value !== null && typeof value !== 'string' && !isClientName(value))
      files.push({ key: `${above}.headers.${name}.file`, file: value.file })
  }
  if (auth !== 'off' && auth.password !== undefined)
    files.push({ key: `${above}.auth.password.file`, file: auth.password.file })
  return files
}

/** A path that only root and the user of Postern may replace. */
export interface TrustedPath extends NamedFile {
  /** The owner is judged only of what Postern itself creates: in a user namespace, the owner of another file may seem to be a stranger. */
  readonly judged: 'folders above' | 'mode' | 'owner and mode'
}

/** The state folder, and what says which server is the right one: certificates of authorities, and sockets of devices. */
export function trustedPaths({ stateDir, store, upstream }: Config): readonly TrustedPath[] {
  const services = servicesOf(upstream).flatMap(({ path, service: { url, tls } }): TrustedPath[] => {
    const above = path.join('.')
    return [
      ...(tls.ca === undefined ? [] : [{ key: `${above}.tls.ca`, file: tls.ca, judged: 'mode' } as const]),
      ...(url.kind === 'unix'
        ? [{ key: `${above}.url`, file: url.path, judged: 'folders above' } as const]
        : []),
    ]
  })
  return [
    { key: 'state_dir', file: stateDir, judged: 'owner and mode' },
    ...(store.tls.ca === undefined
      ? []
      : [{ key: 'store.tls.ca', file: store.tls.ca, judged: 'mode' } as const]),
    ...services,
  ]
}

/** The permissions that a sidecar needs: each file and folder that it reads, watches or writes, and a thread for some hashes. */
export function neededPermissions(config: Config): readonly (NeededPath | 'thread')[] {
  const { listen, admin, stateDir, store } = config
  const sockets = [listen.address, listen.redirect, admin.address].flatMap((address) =>
    address !== 'off' && address.kind === 'unix' ? [address.path] : [],
  )
  const hook = socketOfHook(config)
  return [
    ...[secretFiles(config).map(({ file }) => file), certificateFiles(config), store.tls.ca ?? []]
      .flat()
      .map((path) => ({ path, kind: 'file', write: false }) as const),
    ...sockets.map((path) => ({ path, kind: 'file', write: true }) as const),
    { path: stateDir, kind: 'folder', write: true },
    // The owners of the socket and of its folder are looked at before each connection.
    ...(hook === undefined ? [] : [{ path: dirname(hook), kind: 'folder', write: false } as const]),
    // JavaScript computes nearly all hashes of htpasswd and shadow files, in a thread.
    ...(passwordSources(config).some(({ user }) => user !== undefined) ? (['thread'] as const) : []),
  ]
}

/** The certificates and keys that a reload reads again: of the public listener and towards the device. */
export function certificateFiles({ listen, upstream }: Config): readonly string[] {
  const own = ownPair(listen.tls)
  const services = servicesOf(upstream).flatMap(({ service: { tls } }) => [tls.ca, tls.cert, tls.key])
  return [own?.cert, own?.key, ...services].filter((path) => path !== undefined)
}
