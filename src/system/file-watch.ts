import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from './clock.ts'

export interface FileWatch {
  close(): void
}

/** Milliseconds between looks that nobody asked for. */
const POLL = 500
/** A writer causes several notices at once: one look, this many milliseconds later, serves them all. */
const GATHER = 20
/**
 * Timestamps are as coarse as a kernel tick, or a second on some network file systems, so a second write may leave
 * them alike. For this long after they last moved, the content is read whatever they say.
 */
const DOUBT = 2000

/**
 * Calls `read` whenever the file at `file` may have changed: rewritten, replaced, removed, restored, or reached
 * through a symbolic link that was swapped. One call at a time. The folder is watched, and polled besides, since
 * network file systems and the far ends of symbolic links send no notices.
 */
export function watchFile(file: string, clock: Clock, read: () => Promise<void>): FileWatch {
  let watcher: FSWatcher | undefined
  let gathering: NodeJS.Timeout | undefined
  let looking = false
  let closed = false
  let seen = ''
  let moved = 0

  // What happens during a look is seen by the next one, at the latest when polled.
  const look = async (): Promise<void> => {
    if (looking || closed) return
    looking = true
    try {
      const now = await signature(file)
      if (now !== seen) moved = clock.monotonic()
      if (now !== seen || clock.monotonic() - moved < DOUBT) await read()
      seen = now
    } finally {
      looking = false
    }
  }

  const notice = (): void => {
    gathering ??= setTimeout(() => {
      gathering = undefined
      void look()
    }, GATHER).unref()
  }

  const listen = (): void => {
    try {
      watcher = watch(dirname(file), { persistent: false }, notice)
      watcher.on('error', () => {
        watcher?.close()
        watcher = undefined
      })
    } catch {
      // No folder, or no more watches to be had: the next poll tries again, and until then polling serves.
    }
  }

  listen()
  void look()
  const poll = setInterval(() => {
    if (watcher === undefined) listen()
    void look()
  }, POLL).unref()

  return {
    close() {
      closed = true
      clearInterval(poll)
      clearTimeout(gathering)
      watcher?.close()
    },
  }
}

/** Everything about a file that a change of its content moves, the identity of the one a link leads to included. */
async function signature(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
  } catch (error) {
    return String(error)
  }
}
