import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { Sidecar } from '../compose/sidecar.ts'
import type { Config } from '../config/schema.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import { type FileWatch, watchFile } from '../system/file-watch.ts'
import { reasonOf } from '../system/node-permission.ts'
import { isBug, SetupError } from '../system/setup-error.ts'

export interface ReloaderDependencies {
  readonly sidecar: Pick<Sidecar, 'reload'>
  /** Reads the configuration anew from where it came. */
  readonly load: () => Config
  /** The configuration file, and the files in the configuration whose change is a reload. */
  readonly filesOf: (config: Config) => readonly string[]
  /** What the files held before the start read them: a change since then is news. */
  readonly seen: ReadonlyMap<string, string>
  readonly log: Logger
  readonly clock: Clock
}

export interface Reloader {
  /** Somebody asked for it. Calls that come while one runs are served by one more. */
  reload(): void
  /** Reloads whenever one of the files changes that the configuration is made of. */
  watch(config: Config): void
  close(): void
}

/** Puts changes of the configuration, certificate and key into effect while running; what is wrong changes nothing. */
export function createReloader({
  sidecar,
  load,
  filesOf,
  seen: before,
  log,
  clock,
}: ReloaderDependencies): Reloader {
  const watches = new Map<string, FileWatch>()
  let running = false
  let again = false

  async function reloadOnce(): Promise<void> {
    try {
      let next: Config | undefined
      const { live, restart } = await sidecar.reload(() => {
        next = load()
        return next
      })
      if (next !== undefined && watches.size > 0) watch(next)
      log.info({ changed: live }, 'configuration reloaded')
      if (restart.length > 0) log.warn({ keys: restart }, 'these keys take effect after a restart')
    } catch (error) {
      log.error(causeOf(error), 'configuration not reloaded: the one before holds')
    }
  }

  async function reloadAll(): Promise<void> {
    if (running) {
      again = true
      return
    }
    running = true
    do {
      again = false
      await reloadOnce()
    } while (again)
    running = false
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
    // A file that was only touched is no news; one that nobody has read yet is learnt by the first look.
    let seen = before.get(file)
    return watchFile(file, clock, async () => {
      const content = await settledContent(file, seen)
      const news = seen !== undefined && seen !== content
      seen = content
      if (news) await reloadAll()
    })
  }

  return {
    reload: () => void reloadAll(),
    watch,
    close() {
      for (const watching of watches.values()) watching.close()
    },
  }
}

/** What the log says of a failed reload: the problems that the operator has to mend, or the defect of ours. */
function causeOf(error: unknown): object {
  if (isBug(error)) return { err: error }
  return { problems: error instanceof SetupError ? error.problems : [reasonOf(error)] }
}

/** Milliseconds between two reads that must agree: what a writer has not finished is not taken. */
const SETTLE = 75

/** The content of files as it is now, to be taken before somebody else reads them. */
export async function snapshotOf(files: readonly string[]): Promise<Map<string, string>> {
  return new Map(await Promise.all(files.map(async (file) => [file, await contentOf(file)] as const)))
}

function contentOf(file: string): Promise<string> {
  return readFile(file, 'latin1').catch(() => '')
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
