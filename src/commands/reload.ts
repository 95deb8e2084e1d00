import { readFile } from 'node:fs/promises'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/config-error.ts'
import type { Clock } from '../http/clock.ts'
import { type FileWatch, watchFile } from '../http/file-watch.ts'
import type { Logger } from '../record/log.ts'
import type { Sidecar } from '../sidecar.ts'

export interface ReloaderDependencies {
  readonly sidecar: Pick<Sidecar, 'reload'>
  /** Reads the configuration anew from where it came. */
  readonly load: () => Config
  readonly log: Logger
  readonly clock: Clock
}

export interface Reloader {
  /** Somebody asked for it. Calls that come while one runs are served by one more. */
  reload(): void
  /** Reloads whenever one of these files changes. */
  watch(files: readonly string[]): void
  close(): void
}

/** Puts changes of the configuration, certificate and key into effect while running; what is wrong changes nothing. */
export function createReloader({ sidecar, load, log, clock }: ReloaderDependencies): Reloader {
  const watches: FileWatch[] = []
  let running = false
  let again = false

  async function reloadOnce(): Promise<void> {
    try {
      const { live, restart } = await sidecar.reload(load)
      log.info({ changed: live }, 'configuration reloaded')
      if (restart.length > 0) log.warn({ keys: restart }, 'these keys take effect after a restart')
    } catch (error) {
      const problems = error instanceof ConfigError ? error.problems : [String(error)]
      log.error({ problems }, 'configuration not reloaded: the one before holds')
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

  return {
    reload: () => void reloadAll(),
    watch(files) {
      for (const file of files) {
        // The first look learns what the start has just read; a file that was only touched is no news.
        let seen: string | undefined
        const look = async (): Promise<void> => {
          const content = await readFile(file, 'latin1').catch(() => '')
          const news = seen !== undefined && seen !== content
          seen = content
          if (news) await reloadAll()
        }
        watches.push(watchFile(file, clock, look))
      }
    },
    close() {
      for (const watch of watches) watch.close()
    },
  }
}
