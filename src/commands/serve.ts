import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { SidecarStopped } from '../compose/reload.ts'
import { createSidecar, type Sidecar } from '../compose/sidecar.ts'
import { certificateFiles, neededPermissions } from '../config/files.ts'
import { type ConfigFile, readConfigFile } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { createLog, finishLog, type Logger } from '../record/log.ts'
import { systemClock } from '../system/clock.ts'
import { type FileWatch, watchFile } from '../system/file-watch.ts'
import { readWholeFile } from '../system/named-file.ts'
import { endRestarts, ensurePermissions, mayRestart, type NeededPath } from '../system/permissions.ts'
import { isBug, reasonOf, SetupError } from '../system/setup-error.ts'
import type { CommandIo, DaemonIo, ExitCode } from './command.ts'
import { type ConfigOptions, configFrom, configPath, loadedFrom, located } from './configuration.ts'

export interface ServeIo extends CommandIo, Pick<DaemonIo, 'permissions'> {
  /** Begins to handle signals. */
  readonly daemon: () => DaemonIo
}

/** Runs the sidecar until a signal stops it. A second signal stops it at once. */
export async function serveCommand(options: ConfigOptions, io: ServeIo): Promise<ExitCode> {
  // A restart would lose a signal that is handled before it.
  const early = mayRestart(io.permissions) ? undefined : io.daemon()
  const configFile = configPath(options, io)
  // The content before the configuration is read: a change since then causes a reload.
  const seen = await snapshotOf(configFile === undefined ? [] : [configFile])
  const { config, locationOf } = loadedFrom(options, io, (path) => readOrRestart(path, io))
  const addresses = [config.listen.address, config.admin.address]
  const hasPassedSocket = addresses.some((address) => address !== 'off' && address.kind === 'fd')
  const needs = [...(configFile === undefined ? [] : [readable(configFile)]), ...neededPermissions(config)]
  ensurePermissions(needs, { ...io.permissions, hasPassedSocket })
  // Before the permissions end: it takes `malloc_trim` of the C library.
  const daemon = early ?? io.daemon()
  endRestarts(io.permissions)
  const source = { configFile, seen, load: () => configFrom(options, io) }
  return runSidecar(config, source, daemon).catch((error: unknown) => {
    throw located(error, locationOf)
  })
}

const readable = (path: string): NeededPath => ({ path, kind: 'file', write: false })

/**
 * Reads the configuration, if need be by another program: then one restart permits this file and all that it names. Restarts for
 * the file alone if no program can read it, so that the next attempt works or tells the reason.
 */
function readOrRestart(path: string, { env, permissions }: ServeIo): ConfigFile {
  if (mayRestart(permissions) && permissions.permission?.has('fs.read', resolve(path)) === false) {
    const text = permissions.readOutside(path)
    if (text !== undefined) return { path, text }
    ensurePermissions([readable(path)], { ...permissions, hasPassedSocket: env.LISTEN_FDS !== undefined })
  }
  return readConfigFile(path)
}

interface ConfigurationSource {
  readonly configFile: string | undefined
  /** The content of the files before the start read them. A change since then causes a reload. */
  readonly seen: Map<string, string>
  /** Reads the configuration again. */
  readonly load: () => Config
}

async function runSidecar(
  config: Config,
  { configFile, seen, load }: ConfigurationSource,
  io: DaemonIo,
): Promise<ExitCode> {
  for (const [file, content] of await snapshotOf(certificateFiles(config))) seen.set(file, content)
  const log = await createLog(config.log, io.logSink)
  // The last error handler: a bug in the handling of one request must not end the process for all clients.
  io.onCrash((error) => log.error({ err: error }, 'internal error: this is a bug in Postern'))
  const sidecar = await createSidecar(config, { clock: systemClock, log, collectGarbage: io.collectGarbage })
  const stopSidecar = (): Promise<void> =>
    sidecar.stop().catch((error: unknown) => log.error({ err: error }, 'error while stopping'))
  let asked = 0
  const stopped = new Promise<void>((resolve) => {
    io.onStop(() => {
      asked += 1
      if (asked === 1) stopSidecar().then(resolve)
      else resolve()
    })
  })
  const reloader = createReloader(sidecar, { configFile, seen, load }, log)
  io.onReload(() => reloader.reload('signal'))
  if (asked === 0) {
    await sidecar.start().catch((error: unknown) => {
      if (asked === 0) throw error
    })
  }
  // A program may wait for the line with the addresses, so the log's buffer is flushed.
  log.flush()
  reloader.watch(config)
  await stopped
  reloader.close()
  await finishLog(log)
  return 0
}

/** Applies changes of the configuration, certificate and key at run time. An invalid change has no effect. */
export function createReloader(
  sidecar: Pick<Sidecar, 'reload'>,
  { configFile, seen, load }: ConfigurationSource,
  log: Logger,
) {
  let watches: readonly FileWatch[] = []
  /** A reload waits for its turn, and will read what is in the files then. */
  let waiting = false

  /** @param by what asked for it: a signal, or the path of a file that has changed */
  async function reload(by: string): Promise<void> {
    if (waiting) return
    waiting = true
    try {
      let next: Config | undefined
      const { live, restart } = await sidecar.reload(() => {
        waiting = false
        next = load()
        return next
      })
      if (next !== undefined && watches.length > 0) watch(next)
      log.info({ changed: live, by }, 'configuration reloaded')
      if (restart.length > 0) log.warn({ keys: restart }, 'these keys take effect after a restart')
    } catch (error) {
      if (error instanceof SidecarStopped) log.info('configuration not reloaded: the sidecar stops')
      else
        log.error({ ...causeOf(error), by }, 'configuration not reloaded: the previous one stays in effect')
    }
  }

  function watch(config: Config): void {
    close()
    const files = new Set([configFile ?? [], certificateFiles(config)].flat())
    watches = [...files].map(watchContent)
  }

  function close(): void {
    for (const watching of watches) watching.close()
    watches = []
  }

  function watchContent(file: string): FileWatch {
    // Equal content causes no reload. The first look at a file that was not read before only records its content.
    return watchFile(file, systemClock, async () => {
      const content = await settledContent(file, seen.get(file))
      // After the wait: of two watches of a file, the one that a reload has closed and the one in its place, one sees the change.
      const before = seen.get(file)
      seen.set(file, content)
      if (before !== undefined && before !== content) await reload(file)
    })
  }

  return {
    /** Reloads the configuration. Calls during a reload cause one more. */
    reload: (by: string) => void reload(by),
    watch,
    close,
  }
}

/** The log fields of a failed reload: the problems that the operator has to fix, or the error of a bug. */
function causeOf(error: unknown): object {
  if (isBug(error)) return { err: error }
  return { problems: error instanceof SetupError ? error.problems : [reasonOf(error)] }
}

/** Time between two reads (ms). Only equal content is used, so a half-written file is not. */
const SETTLE = 75

/** The present content of files. */
async function snapshotOf(files: readonly string[]): Promise<Map<string, string>> {
  return new Map(await Promise.all(files.map(async (file) => [file, await contentOf(file)] as const)))
}

function contentOf(file: string): Promise<string> {
  return readWholeFile(file).then(
    (bytes) => bytes.toString('latin1'),
    () => '',
  )
}

async function settledContent(file: string, seen: string | undefined): Promise<string> {
  let content = await contentOf(file)
  while (content !== seen) {
    await delay(SETTLE)
    const again = await contentOf(file)
    if (again === content) break
    content = again
  }
  return content
}
