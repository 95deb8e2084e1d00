import { stdout } from 'node:process'
import { createSidecar as compose } from './compose/sidecar.ts'
import { loadConfig, readConfigFile } from './config/load.ts'
import type { Config } from './config/schema.ts'
import type { YamlValue } from './config/yaml.ts'
import type { PasswordFunctions } from './password/hook.ts'
import { openLogOn } from './record/log.ts'
import { systemClock } from './system/clock.ts'
import { SetupError } from './system/setup-error.ts'

export type { PasswordFunctions }
export { SetupError }

/**
 * The configuration: the keys and values of `postern.yaml`, as an object. `deploy/configuration.md` describes every key. An
 * unknown key and a wrong value are errors.
 */
export interface Configuration {
  /** The device, such as `{ url: 'http://192.0.2.7' }`. */
  readonly upstream: { readonly url: string; readonly [key: string]: YamlValue | undefined }
  /** Where the device password is found, such as `{ file: '/etc/postern/password' }`. Leave it out with `verify`. */
  readonly password?: { readonly [source: string]: YamlValue | undefined }
  readonly [key: string]: YamlValue | undefined | { readonly [key: string]: YamlValue | undefined }
}

/** The configuration, or the path of a YAML file with it. */
export type Source = { readonly config: Configuration } | { readonly configFile: string }

/** Receives each line of the log: one JSON object and its line end. A writable stream of Node is one. */
export interface LogDestination {
  /** Called synchronously, and must not throw. Nothing awaits a promise that it returns, so none may reject. */
  write(line: string): void
}

/** The addresses on which a sidecar listens, such as `https://127.0.0.1:8443`. `admin` is null with `admin.address: off`. */
export interface Addresses {
  readonly public: string
  readonly admin: string | null
}

/** The keys that a reload changed, such as `limits.api.requests`. Those in `restart` have no effect on this sidecar. */
export interface Changes {
  readonly live: readonly string[]
  readonly restart: readonly string[]
}

/** A sidecar. Several in one program have their own tokens and limits, and need a `state_dir` each. */
export interface Sidecar {
  /**
   * Listens. If an address cannot be used, the sidecar is stopped and this rejects with the reason. A second call gives the
   * result of the first; after a stop, or when one comes during the start, it rejects.
   */
  start(): Promise<Addresses>
  /**
   * Applies another configuration without closing a connection, or the same one again: then a `configFile`, the certificate
   * and the key are read anew. The password file is watched and needs no reload. Calls are applied
   * in their order; the last one that succeeds holds. Rejects, and changes nothing, with a `SetupError` if the configuration or a file in it is unusable,
   * or after a stop.
   */
  reload(source?: Source): Promise<Changes>
  /**
   * Ends. Requests in flight may finish within `graceMs` (milliseconds; default: 10,000), the rest are
   * aborted. When it resolves, nothing of the sidecar keeps the process alive. A second call waits for the first.
   */
  stop(graceMs?: number): Promise<void>
}

/**
 * Creates a sidecar in this process, for programs that embed Postern instead of running `postern serve`. It reads no
 * environment variables and handles no signals. Its log is JSON, whatever `log.format` says, and goes to standard output unless
 * `log` is given. If `verify` is given, it checks passwords, and the configuration names no source of them. Rejects with a `SetupError`,
 * which lists every problem, if the configuration or a file in it is unusable.
 */
export async function createSidecar(
  source: Source & Partial<PasswordFunctions> & { readonly log?: LogDestination | undefined },
): Promise<Sidecar> {
  const { verify, fingerprint } = source
  const hasFunctions = verify !== undefined
  if (!hasFunctions && fingerprint !== undefined) throw new SetupError('fingerprint: needs verify beside it')
  const config = configOf(source, hasFunctions)
  const destination = source.log ?? stdout
  const log = openLogOn(config.log.level, { write: (line) => void destination.write(line) })
  const sidecar = await compose(config, {
    clock: systemClock,
    ...log,
    verify: hasFunctions ? { verify, fingerprint } : undefined,
  })
  let stopped: Promise<void> | undefined
  const stop = (graceMs?: number): Promise<void> => {
    stopped ??= sidecar.stop(graceMs)
    return stopped
  }
  return {
    async start() {
      try {
        return await sidecar.start()
      } catch (error) {
        await stop(0)
        throw error
      }
    },
    reload: (next = source) => sidecar.reload(() => configOf(next, hasFunctions)),
    stop,
  }
}

function configOf(source: Source, hasFunctions: boolean): Config {
  if ('configFile' in source) return loadConfig({ file: readConfigFile(source.configFile), hasFunctions })
  if ('config' in source) return loadConfig({ object: source.config, hasFunctions })
  throw new SetupError('name a configuration: { config: { upstream, password } } or { configFile: path }')
}
