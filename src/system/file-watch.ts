import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from './clock.ts'

export interface FileWatch {
  close(): void
}

/** The polling interval (ms). */
const POLL_INTERVAL = 500
/** One write causes several notifications. One check, this long (ms) after the first, covers them all. */
const DEBOUNCE = 20
/**
 * Timestamps are as coarse as a kernel tick, or a second on some network file systems, so a second write may not change them. For
 * this long (ms) after they last changed, each check reads the content.
 */
const RECHECK_TIME = 2000

/**
 * Calls `read` when the file may have changed: it was rewritten, replaced, removed or restored, or a symbolic link on its path
 * was changed. Only one call runs at a time. The folder is watched, and the file is also polled, because network file systems
 * and the targets of symbolic links send no notifications.
 */
export function watchFile(file: string, clock: Clock, read: () => Promise<void>): FileWatch {
  let watcher: FSWatcher | undefined
  let pending: NodeJS.Timeout | undefined
  let checking = false
  let closed = false
  let seen = ''
  let changedAt = 0

  // The next check sees a change that happens during this one; the poll guarantees that there is one.
  const check = async (): Promise<void> => {
    if (checking || closed) return
    checking = true
    try {
      const now = await signature(file)
      if (now !== seen) changedAt = clock.monotonic()
      if (now !== seen || clock.monotonic() - changedAt < RECHECK_TIME) await read()
      seen = now
    } finally {
      checking = false
    }
  }

  const notify = (): void => {
    pending ??= setTimeout(() => {
      pending = undefined
      void check()
    }, DEBOUNCE).unref()
  }

  const listen = (): void => {
    try {
      watcher = watch(dirname(file), { persistent: false }, notify)
      watcher.on('error', () => {
        watcher?.close()
        watcher = undefined
      })
    } catch {
      // The folder does not exist, or the system has no more watches. Polling covers this, and the next poll tries again.
    }
  }

  listen()
  void check()
  const poll = setInterval(() => {
    if (watcher === undefined) listen()
    void check()
  }, POLL_INTERVAL).unref()

  return {
    close() {
      closed = true
      clearInterval(poll)
      clearTimeout(pending)
      watcher?.close()
    },
  }
}

/** The metadata that changes with the content of a file. It includes the identity of the file that a link points to. */
async function signature(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
  } catch (error) {
    return String(error)
  }
}
