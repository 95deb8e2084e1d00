import { resolve } from 'node:path'
import { createSidecar } from '../compose/sidecar.ts'
import { certificateFiles, neededPermissions } from '../config/files.ts'
import { type ConfigFile, readConfigFile } from '../config/load.ts'
import { socketOfHook } from '../config/password-fields.ts'
import type { Config } from '../config/schema.ts'
import { requireHook } from '../password/hook-socket.ts'
import { createLook } from '../system/other-writers.ts'
import {
  endRestarts,
  ensurePermissions,
  mayRestart,
  type NeededPath,
  type PermissionedProcess,
} from '../system/permissions.ts'
import type { CommandIo, DaemonIo, ExitCode } from './command.ts'
import { type ConfigOptions, configPath, loadedFrom, located } from './configuration.ts'
import { type ConfigurationSource, createReloader, snapshotOf } from './reloader.ts'

interface ServeIo extends CommandIo, Pick<DaemonIo, 'permissions'> {
  /** Begins to handle signals. */
  readonly daemon: () => DaemonIo
}

/** Runs the sidecar until a signal stops it. A second signal stops it at once. */
export async function serveCommand(options: ConfigOptions, io: ServeIo): Promise<ExitCode> {
  // Not before a possible restart, which would lose a handled signal.
  const early = mayRestart(io.permissions) ? undefined : io.daemon()
  const configFile = configPath(options, io)
  // The content before the configuration is read: a change since then causes a reload.
  const seen = await snapshotOf(configFile === undefined ? [] : [configFile])
  const { config, locationOf } = loadedFrom(options, io, (path) => readOrRestart(path, io))
  const addresses = [config.listen.address, config.listen.redirect, config.admin.address]
  const hasPassedSocket = addresses.some((address) => address !== 'off' && address.kind === 'fd')
  const needs = [...(configFile === undefined ? [] : [readable(configFile)]), ...neededPermissions(config)]
  ensurePermissions(needs, { ...io.permissions, hasPassedSocket })
  const daemon = early ?? io.daemon()
  const source = { configFile, seen, load: () => loadedFrom(options, io) }
  try {
    await judgeHook(config, io.permissions)
    endRestarts(io.permissions)
    return await runSidecar(config, source, daemon)
  } catch (error) {
    throw located(error, locationOf)
  }
}

/** While other programs can be started, they see the folders above the socket, which Node's permission model hides from this process. */
async function judgeHook(config: Config, permissions: PermissionedProcess): Promise<void> {
  const socket = socketOfHook(config)
  if (socket !== undefined && mayRestart(permissions)) await requireHook(socket, createLook(permissions))
}

const readable = (path: string): NeededPath => ({ path, kind: 'file', write: false })

/**
 * Reads the configuration, if need be with another program: then one restart permits this file and all files that it names. If that program
 * cannot read the file, restarts with permission for this file, so that the next read works or has the reason.
 */
function readOrRestart(path: string, { env, permissions }: ServeIo): ConfigFile {
  if (mayRestart(permissions) && permissions.permission?.has('fs.read', resolve(path)) === false) {
    const text = permissions.readOutside(path)
    if (text !== undefined) return { path, text }
    ensurePermissions([readable(path)], { ...permissions, hasPassedSocket: env.LISTEN_FDS !== undefined })
  }
  return readConfigFile(path)
}

async function runSidecar(
  config: Config,
  { configFile, seen, load }: ConfigurationSource,
  io: DaemonIo,
): Promise<ExitCode> {
  for (const [file, content] of await snapshotOf(certificateFiles(config))) seen.set(file, content)
  const logged = await io.openLog(config.log)
  const { log } = logged
  // Writes the last lines, however this ends.
  await using destination = logged.destination
  // The last error handler: a bug in one request must not end the process for all clients.
  io.onCrash((error) => log.error({ err: error }, 'internal error: this is a bug in Postern'))
  const sidecar = await createSidecar(config, {
    clock: io.clock,
    log,
    destination,
    configFile,
    ownsProcess: true,
    waitsForAddresses: true,
  })
  const stopSidecar = (): Promise<void> =>
    sidecar.stop().catch((error: unknown) => log.error({ err: error }, 'error while stopping'))
  let asked = 0
  const stopped = new Promise<void>((resolve) => {
    io.onStop(() => {
      asked += 1
      if (asked === 1) stopSidecar().then(resolve)
      else if (asked === 2) sidecar.hurry()
      else resolve()
    })
  })
  const reloader = createReloader(sidecar, { configFile, seen, load }, log, io.clock)
  io.onReload(() => reloader.reload('signal'))
  // Not awaited: this machine may get a late address at any time, and files are watched meanwhile.
  const started =
    asked > 0
      ? undefined
      : sidecar.start().then(
          // A program may wait for the line with the addresses, so the log's buffer is flushed.
          () => log.flush(),
          async (error: unknown) => {
            if (asked > 0) return
            await stopSidecar()
            throw error
          },
        )
  reloader.watch(config)
  await Promise.race([stopped, started?.then(() => stopped) ?? stopped]).finally(reloader.close)
  return 0
}
