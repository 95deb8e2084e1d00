import { type AdminListener, createAdminListener, type Readiness } from '../admin/admin-listener.ts'
import type { PageDependencies, PageRoutes } from '../admin/page-routes.ts'
import type { Config } from '../config/schema.ts'
import { admitsAddress } from '../http/ip.ts'
import { openPasswords, type Passwords } from '../password/sources.ts'
import type { Logger } from '../record/log.ts'
import type { Metrics } from '../record/metrics.ts'
import type { RecentRequests } from '../record/recent-requests.ts'
import type { MachineNames } from '../system/machine-names.ts'
import type { State } from '../tokens/state.ts'

export interface Admin extends AdminListener {
  /** Ends the streams of the live page. The rest works until `close`. */
  endStreams(): void
  close(): void
}

export interface AdminSources extends Pick<PageDependencies, 'clock' | 'overview' | 'onBug'> {
  readonly log: Logger
  readonly requests: Pick<RecentRequests, 'recent' | 'explain'>
  readonly state: { readonly tokens: Pick<State['tokens'], 'revoke'> }
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>
  readonly readiness: () => Readiness
  readonly machine: () => MachineNames
  /** The present configuration, for `admin.hosts`. */
  readonly current: () => Config
  /** The files of the page; default: those that Postern ships. */
  readonly files?: PageDependencies['files']
}

/** Creates the admin listener. Rejects with `SetupError` if `admin.password_file` cannot be used. */
export async function openAdmin({ admin }: Config, sources: AdminSources): Promise<Admin> {
  const { log, metrics, readiness, machine, requests, state, current, onBug, files = shippedFiles } = sources
  let page: PageRoutes | undefined
  let stopped = false

  function onPasswordChange(): void {
    log.warn('the password of the live page has changed: all viewers are signed out')
    page?.endSessions()
  }
  const isNeeded = admin.address !== 'off' && admin.passwordFile !== undefined
  const password = isNeeded ? await openPassword(admin.passwordFile, sources, onPasswordChange) : undefined

  const { server, closeDenied } = createAdminListener({
    metrics: metrics.text,
    metricsType: metrics.contentType,
    readiness,
    onBug,
    admits: (address) => admitsAddress(current().admin.allow, current().admin.deny)(address),
    hosts: {
      configured: () => namesIn(current()),
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
      const { recent, explain } = requests
      page = createPageRoutes(
        {
          ...sources,
          files,
          recent,
          // An id that a trusted proxy sent twice: the page shows the latest, `postern explain` all.
          explain: (id) => explain(id)[0],
          revoke: state.tokens.revoke,
          password,
        },
        reach,
      )
      if (stopped) page.stop()
      return page
    },
  })
  const endStreams = (): void => {
    stopped = true
    page?.stop()
  }
  return {
    server,
    closeDenied,
    endStreams,
    close() {
      endStreams()
      password?.close()
      server.close()
      server.closeAllConnections()
    },
  }
}

async function openPassword(
  file: string,
  { clock, log }: AdminSources,
  changed: () => void,
): Promise<Passwords> {
  const events = {
    changed,
    unreadable: (reason: string) =>
      log.error({ reason }, 'admin.password_file cannot be used; the last good password stays valid'),
    restored: () => log.info('admin.password_file can be used again'),
  }
  return openPasswords([{ name: '', file, key: 'admin.password_file' }], { clock, events })
}

/** What an operator has configured as a name of this machine. */
function namesIn({ admin, listen }: Config): readonly string[] {
  const bound = admin.address !== 'off' && admin.address.kind === 'tcp' ? [admin.address.host] : []
  const certified = typeof listen.tls !== 'string' && 'names' in listen.tls ? listen.tls.names : []
  return [...admin.hosts, ...bound, ...certified]
}

async function shippedFiles(): ReturnType<PageDependencies['files']> {
  const { loadPageFiles } = await import('../admin/page-files.ts')
  return loadPageFiles()
}
