import { createServer as createHttpServer } from 'node:http'
import { type CreateServer, createAdminListener, type Readiness } from '../admin/admin-listener.ts'
import { REQUEST_TIMEOUT } from '../admin/admin-wire.ts'
import type { PageDependencies, PageRoutes } from '../admin/page-routes.ts'
import { pagePasswordSources } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { admitsAddress } from '../http/ip.ts'
import { contextOf } from '../listen/handshakes.ts'
import type { ServedCertificate } from '../listen/served-certificate.ts'
import { openPasswords, type Replacement } from '../password/sources.ts'
import type { HashMemory } from '../password/verifier.ts'
import type { Metrics } from '../record/metrics.ts'
import type { MachineNames } from '../system/machine-names.ts'
import { SetupError } from '../system/setup-error.ts'
import { adminConnections } from './descriptors.ts'

interface Sources extends Omit<PageDependencies, 'files' | 'password' | 'secure'> {
  /** The certificate of the public listener, for `admin.tls`. */
  readonly certificate: Pick<ServedCertificate, 'material' | 'serve'>
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>
  readonly hashMemory?: HashMemory
  readonly readiness: () => Readiness
  readonly machine: () => MachineNames
  /** The present configuration, for `admin.hosts`. */
  readonly current: () => Config
  /** The files of the page; default: those that Postern ships. */
  readonly files?: PageDependencies['files']
}

/** Creates the admin listener. Rejects with `SetupError` if `admin.password_file` cannot be used. */
export async function openAdmin({ admin }: Config, sources: Sources) {
  const { tls } = admin
  const { clock, log, metrics, readiness, machine, current, onBug, files = shippedFiles } = sources
  let page: PageRoutes | undefined
  let stopped = false

  const events = {
    changed() {
      log.warn('the password of the live page has changed: all viewers are signed out')
      page?.endSessions()
    },
    unreadable: (reason: string) =>
      log.error({ reason }, 'admin.password_file cannot be used; the last good password stays valid'),
    restored: () => log.info('admin.password_file can be used again'),
  }
  const password = await openPasswords(pagePasswordSources(admin), {
    clock,
    events,
    memory: sources.hashMemory,
  })

  const secure = tls === 'on'
  const createServer = secure ? await tlsServer(sources.certificate) : createHttpServer
  const { server, closeDenied, closeAll } = createAdminListener({
    clock,
    createServer,
    metrics: metrics.text,
    metricsType: metrics.contentType,
    readiness,
    onBug,
    mostConnections: adminConnections(),
    admits: (peer) => admitsAddress(current().admin.allow)(peer),
    hosts: {
      configured: () => hostNames(current()),
      machine: () => machine().names,
      onUnknown: (name) =>
        log.warn(
          { name },
          'admin listener: a request with an unknown name in Host was refused: see admin.hosts',
        ),
    },
    // Loaded only here, because most sidecars have no viewer.
    async page(reach) {
      const { createPageRoutes } = await import('../admin/page-routes.ts')
      page = createPageRoutes({ ...sources, files, password, secure }, reach)
      if (stopped) page.stop()
      return page
    },
  })
  /** Ends the event streams of the page. Other requests are answered until the listener closes. */
  const endStreams = (): void => {
    stopped = true
    page?.stop()
  }
  return {
    server,
    closeDenied,
    /** Opens the password of another configuration: see `Passwords`. Without one, the sessions end. */
    async replacePassword({ admin: next }: Config, limit: number): Promise<Replacement> {
      const replacement = await password.replace(pagePasswordSources(next), limit)
      return {
        ...replacement,
        swap() {
          replacement.swap()
          if (!password.isSet) page?.endSessions()
        },
      }
    },
    /** The queued bytes that the viewers of the page have not read. */
    unread: (): number => page?.unread() ?? 0,
    endStreams,
    [Symbol.dispose]() {
      endStreams()
      password[Symbol.dispose]()
      server.close()
      closeAll()
    },
  }
}

/** Returns a function that creates a server with the certificate of the public listener. The server takes over each new certificate. */
async function tlsServer(certificate: Sources['certificate']): Promise<CreateServer> {
  const { material } = certificate
  if (material === undefined)
    throw new SetupError('needs the certificate of listen.tls', { key: 'admin.tls' })
  const { createServer } = await import('node:https')
  return (options, onRequest) => {
    const tls = {
      ...contextOf(material),
      ALPNProtocols: ['http/1.1'],
      // Longer than the deadline of the connection, which ends a handshake first.
      handshakeTimeout: 2 * REQUEST_TIMEOUT,
    }
    const server = createServer({ ...options, ...tls }, onRequest)
    certificate.serve((next) => server.setSecureContext(contextOf(next)))
    return server
  }
}

/** The names of this machine in the configuration. */
function hostNames({ admin, listen }: Config): readonly string[] {
  const bound = admin.address !== 'off' && admin.address.kind === 'tcp' ? [admin.address.host] : []
  const certified = typeof listen.tls !== 'string' && 'names' in listen.tls ? listen.tls.names : []
  return [...admin.hosts, ...bound, ...certified]
}

async function shippedFiles(): ReturnType<PageDependencies['files']> {
  const { loadPageFiles } = await import('../admin/page-files.ts')
  return loadPageFiles()
}
