import { createSidecar } from '../../compose/sidecar.ts'
import { loadConfig, readConfigFile } from '../../config/load.ts'
import { createLog, type LogSink } from '../../record/log.ts'
import type { Clock } from '../../system/clock.ts'

export interface RunningSidecar {
  /** By the name that the self-signed certificate carries: `https://localhost:8443`. */
  readonly publicUrl: string
  readonly adminUrl: string
  readonly stop: (graceMs: number) => Promise<void>
}

export interface SidecarSurroundings {
  readonly clock: Clock
  readonly logSink: LogSink
}

/**
 * Starts a sidecar from a configuration file the way `postern serve` does, except that the environment does not
 * count: what somebody has set there for a real device must not steer the demo.
 */
export async function startSidecar(file: string, around: SidecarSurroundings): Promise<RunningSidecar> {
  const config = loadConfig({ file: readConfigFile(file), env: {}, sets: [] })
  const log = await createLog(config.log, around.logSink)
  const sidecar = await createSidecar(config, { clock: around.clock, log })
  try {
    const addresses = await sidecar.start()
    return {
      publicUrl: addresses.public.replace('//127.0.0.1:', '//localhost:'),
      adminUrl: addresses.admin ?? 'off',
      stop: (graceMs) => sidecar.stop(graceMs),
    }
  } catch (error) {
    await sidecar.stop(0)
    throw error
  }
}
