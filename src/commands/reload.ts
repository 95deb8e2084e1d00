import { setTimeout as delay } from 'node:timers/promises'
import type { Sidecar } from '../compose/sidecar.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import { type FileWatch, watchFile } from '../system/file-watch.ts'
import { readWholeFile } from '../system/named-file.ts'
import { isBug, reasonOf, SetupError } from '../system/setup-error.ts'

export interface ReloaderDependencies {
  readonly sidecar: Pick<Sidecar, 'reload'>
  /** Reads the configuration again from its sources. */
  readonly load: () => Config
  /** The files whose change causes a reload: the configuration file, and those that the configuration names. */
  readonly filesOf: (config: Config) => readonly string[]
  /** The content of the files before the start read them. A change since then causes a reload. */
  readonly seen: ReadonlyMap<string, string>
  readonly log: Logger
  readonly clock: Clock
}

export interface Reloader {
  /** Reloads the configuration. Calls during a reload cause one more. */
  reload(): void
  watch(config: Config): void
  close(): void
}

/** Applies changes of the configuration, certificate and key at run time. An invalid change has no effect. */
export function createReloader({
  sidecar,
  load,
  filesOf,
  seen: before,
  log,
  clock,
}: ReloaderDependencies): Reloader {
  const watches = new Map<string, FileWatch>()
  /** A reload waits for its turn, and will read what is in the files then. */
  let waiting = false

  async function reload(): Promise<void> {
    if (waiting) return
    waiting = true
    try {
      let next: Config | undefined
      const { live, restart } = await sidecar.reload(() => {
        waiting = false
        next = load()
        return next
      })
      if (next !== undefined && watches.size > 0) watch(next)
      log.info({ changed: live }, 'configuration reloaded')
      if (restart.length > 0) log.warn({ keys: restart }, 'these keys take effect after a restart')
    } catch (error) {
      log.error(causeOf(error), 'configuration not reloaded: the previous one stays in effect')
    }
  }

  function watch(config: Config): void {
    const files = new Set(filesOf(config))
    for (const [file, watching] of watches) {
      if (files.has(file)) continue
      watching.close()
      watches.delete(file)
    }
    for (const file of files) if (!watches.has(file)) watches.set(file, watchContent(file))
  }

  function watchContent(file: string): FileWatch {
    // Equal content causes no reload. The first look at a file that was not read before only records its content.
    let seen = before.get(file)
    return watchFile(file, clock, async () => {
      const content = await settledContent(file, seen)
      const changed = seen !== undefined && seen !== content
      seen = content
      if (changed) await reload()
    })
  }

  return {
    reload: () => void reload(),
    watch,
    close() {
      for (const watching of watches.values()) watching.close()
    },
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
