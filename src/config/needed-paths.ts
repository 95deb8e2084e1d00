import type { NeededPath } from '../system/permissions.ts'
import type { Config } from './schema.ts'
import { secretFiles } from './secrets.ts'
import { ownPair } from './tls-field.ts'
import { servicesOf } from './upstream-fields.ts'

/** Every file and folder that a sidecar with this configuration opens itself: those that are read, watched or written. */
export function neededPaths(config: Config): readonly NeededPath[] {
  const { listen, admin, upstream, stateDir } = config
  const certificates = ownPair(listen.tls)?.cert ?? []
  const authorities = servicesOf(upstream).flatMap(({ service }) => service.tls.ca ?? [])
  const sockets = [listen.address, admin.address].flatMap((address) =>
    address !== 'off' && address.kind === 'unix' ? [address.path] : [],
  )
  return [
    ...[secretFiles(config).map(({ file }) => file), certificates, authorities]
      .flat()
      .map((path) => ({ path, kind: 'file', write: false }) as const),
    ...sockets.map((path) => ({ path, kind: 'file', write: true }) as const),
    { path: stateDir, kind: 'folder', write: true },
  ]
}
