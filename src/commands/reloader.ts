import { problemsIn, SidecarStopped } from '../compose/reload.ts'
import type { Sidecar } from '../compose/sidecar.ts'
import { certificateFiles } from '../config/files.ts'
import type { Loaded } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../record/log.ts'
import { TROUBLES } from '../record/troubles.ts'
import type { Clock, Timer } from '../system/clock.ts'
import { createRetryPauses, type FileWatch, watchFile } from '../system/file-watch.ts'
import { readWholeFile } from '../system/named-file.ts'
import { causeOf, isBug, lacksResources, reasonOf } from '../system/setup-error.ts'
import { located } from './configuration.ts'

export interface ConfigurationSource {
  readonly configFile: string | undefined
  /** The content of the files before the start read them; undefined for an unreadable file. A change since then causes a reload. */
  readonly seen: Map<string, string | undefined>
  /** Reads the configuration again. */
  readonly load: () => Pick<Loaded, 'config' | 'locationOf'>
}

/** Applies changes of the configuration, certificate and key at run time. An invalid change has no effect. */
export function createReloader(
  sidecar: Pick<Sidecar, 'reload'>,
  { configFile, seen, load }: ConfigurationSource,
  log: Logger,
  clock: Clock,
) {
  let watches: readonly FileWatch[] = []
  /** A reload waits for its turn. It will read the files at that time. */
  let waiting = false
  let retry: Timer | undefined
  const pauses = createRetryPauses()
  /** The reason of the last failed reload. A retry that fails for the same reason is not logged. */
  let lastReason = ''

  /** @param by the cause: a signal, or the path of a changed file */
  async function reload(by: string): Promise<void> {
    if (waiting) return
    waiting = true
    retry?.cancel()
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
      pauses.reset()
      lastReason = ''
      if (next !== undefined && watches.length > 0) watch(next)
      log.info({ changed: live, by }, 'configuration reloaded')
      if (restart.length > 0) log.warn({ keys: restart }, 'these keys take effect after a restart')
    } catch (error) {
      if (error instanceof SidecarStopped) log.info('configuration not reloaded: the sidecar stops')
      else {
        const isRepeated = lacksResources(error) && lastReason === reasonOf(error)
        if (!isRepeated) log.error({ ...faultOf(error), by, remedy: remedyOf(error) }, REFUSED.line)
        lastReason = reasonOf(error)
        if (lacksResources(error)) reloadLater(by)
      }
    }
  }

  /** Repeats a reload that failed because the system lacked resources: the files are right, so no change of them would cause a reload. */
  function reloadLater(by: string): void {
    retry = clock.after(pauses.next(), () => void reload(by))
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

  function closeAll(): void {
    retry?.cancel()
    close()
  }

  function watchContent(file: string): FileWatch {
    // Equal content causes no reload. The first look at a file that was not read before only records its content.
    return watchFile(file, clock, async () => {
      const content = await settledContent(clock, file, seen.get(file))
      // Read after the wait: a reload replaces the watch of a file, and only one of the two watches may see the change.
      const isFirst = !seen.has(file)
      const before = seen.get(file)
      seen.set(file, content)
      if (!isFirst && before !== content) await reload(file)
      return content !== undefined
    })
  }

  return {
    /** Reloads the configuration. Calls during a reload cause one more. */
    reload: (by: string) => void reload(by),
    watch,
    close: closeAll,
  }
}

const REFUSED = TROUBLES.PosternReloadFailed

/** The log fields of a failed reload: the problems that the operator has to fix, or the error if it is a bug. */
function faultOf(error: unknown): object {
  return isBug(error) ? causeOf(error) : { problems: problemsIn(error) }
}

/** Undefined where no change of the file would help. */
function remedyOf(error: unknown): string | undefined {
  return isBug(error) || lacksResources(error) ? undefined : REFUSED.remedy
}

/** The time between two reads (ms). Content is used only if two reads agree, so a half-written file is not used. */
const SETTLE = 75

/** The present content of files; undefined for an unreadable file. */
export async function snapshotOf(files: readonly string[]): Promise<Map<string, string | undefined>> {
  return new Map(await Promise.all(files.map(async (file) => [file, await contentOf(file)] as const)))
}

function contentOf(file: string): Promise<string | undefined> {
  return readWholeFile(file).then(
    (bytes) => bytes.toString('latin1'),
    () => undefined,
  )
}

async function settledContent(
  clock: Clock,
  file: string,
  seen: string | undefined,
): Promise<string | undefined> {
  let content = await contentOf(file)
  while (content !== seen) {
    await clock.pause(SETTLE)
    const again = await contentOf(file)
    if (again === content) break
    content = again
  }
  return content
}
