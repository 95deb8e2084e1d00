import type { NeededPath } from '../system/permissions.ts'
import type { Config } from './schema.ts'
import { secretFiles } from './secrets.ts'
import { ownPair } from './tls-field.ts'
import { servicesOf } from './upstream-fields.ts'

/** What a sidecar with this configuration needs: every file and folder that it reads, watches or writes, and a thread for some hashes. */
export function neededPermissions(config: Config): readonly (NeededPath | 'thread')[] {
  const { listen, admin, upstream, stateDir, store } = config
  const certificates = ownPair(listen.tls)?.cert ?? []
  const services = servicesOf(upstream).map(({ service }) => service)
  const authorities = [...services, store].flatMap(({ tls }) => tls.ca ?? [])
  const sockets = [listen.address, admin.address].flatMap((address) =>
    address !== 'off' && address.kind === 'unix' ? [address.path] : [],
  )
  return [
    ...[secretFiles(config).map(({ file }) => file), certificates, authorities]
      .flat()
      .map((path) => ({ path, kind: 'file', write: false }) as const),
    ...sockets.map((path) => ({ path, kind: 'file', write: true }) as const),
    { path: stateDir, kind: 'folder', write: true },
    // Of their hashes, JavaScript computes nearly all.
    ...('htpasswd' in config.password || 'shadow' in config.password ? (['thread'] as const) : []),
  ]
}
