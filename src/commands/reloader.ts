import { setTimeout as delay } from 'node:timers/promises'
import { SidecarStopped } from '../compose/reload.ts'
import type { Sidecar } from '../compose/sidecar.ts'
import { certificateFiles } from '../config/files.ts'
import type { Loaded } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../record/log.ts'
import { systemClock } from '../system/clock.ts'
import { type FileWatch, watchFile } from '../system/file-watch.ts'
import { readWholeFile } from '../system/named-file.ts'
import { isBug, reasonOf, SetupError } from '../system/setup-error.ts'
import { located } from './configuration.ts'

export interface ConfigurationSource {
  readonly configFile: string | undefined
  /** The content of the files before the start read them. A change since then causes a reload. */
  readonly seen: Map<string, string>
  /** Reads the configuration again. */
  readonly load: () => Pick<Loaded, 'config' | 'locationOf'>
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
      let locationOf: Loaded['locationOf'] = () => undefined
      const { live, restart } = await sidecar.reload(
        () => {
          waiting = false
          const loaded = load()
          locationOf = loaded.locationOf
          next = loaded.config
          return next
        },
        (error) => located(error, locationOf),
      )
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
export async function snapshotOf(files: readonly string[]): Promise<Map<string, string>> {
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
