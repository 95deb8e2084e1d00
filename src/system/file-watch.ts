import { type FSWatcher, watch } from 'node:fs'
import { realpath, stat, statfs } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type { Clock, Timer } from './clock.ts'

export type FileWatch = ReturnType<typeof watchFile>

/** The polling interval (ms) of a file whose changes may cause no notification. */
const POLL_INTERVAL = 500
/** The same for any other file, in case a notification was lost: each look wakes two threads. */
const CALM_INTERVAL = 30_000
/** One write causes several notifications. One check, this long (ms) after the first, covers them all. */
const DEBOUNCE = 20
/**
 * Timestamps are as coarse as a kernel tick, or a second on some network file systems, so a second write may not change them. For
 * this long (ms) after they last changed, each check reads the content.
 */
const RECHECK_TIME = 2000
/** The first pause before a retry (ms). */
const FIRST_RETRY = 1000

/** The pauses between retries of a read that failed: a second at first, then twice as long each time, up to `CALM_INTERVAL`. */
export function createRetryPauses() {
  let pause = FIRST_RETRY
  return {
    /** The next pause (ms). */
    next(): number {
      const present = pause
      pause = Math.min(2 * pause, CALM_INTERVAL)
      return present
    },
    /** A read succeeded. */
    reset(): void {
      pause = FIRST_RETRY
    },
  }
}

/**
 * Calls `read` when the file may have changed: it was rewritten, replaced, removed or restored, or a symbolic link on its path
 * was changed. Only one call runs at a time. The folders of the file and of the file that it links to are watched. It is also polled:
 * often where changes cause no notification, as on network file systems.
 *
 * @param read returns false if it could not read the file, for example because the process has no descriptor left. Then it is called again until
 *   it can, even if the file does not change any more
 */
export function watchFile(file: string, clock: Clock, read: () => Promise<boolean>) {
  let watchers: readonly FSWatcher[] = []
  let next: Timer | undefined
  let notified = false
  let checking = false
  let closed = false
  let seen = ''
  let changedAt = 0
  const pauses = createRetryPauses()
  /** When the read is repeated (ms, monotonic); undefined if the last one succeeded. */
  let retryAt: number | undefined

  const isRecent = (): boolean => clock.monotonic() - changedAt < RECHECK_TIME

  // The next check sees a change that happens during this one; the poll guarantees that there is one.
  const check = async (): Promise<void> => {
    if (checking || closed) return
    checking = true
    notified = false
    try {
      const now = await signature(file)
      const changed = now !== seen
      if (changed) changedAt = clock.monotonic()
      if (changed || watchers.length === 0) listen(await eventfulPaths(file))
      const succeeded = changed || isRecent() || isDue() ? await read() : undefined
      if (succeeded !== undefined) noteRead(succeeded)
      // A file that was missing and is read has come between. Missing once more, it would look as before.
      seen = succeeded === true && isError(now) ? '' : now
    } finally {
      checking = false
      const usual = watchers.length === 0 ? POLL_INTERVAL : CALM_INTERVAL
      const untilRetry = retryAt === undefined ? usual : Math.max(0, retryAt - clock.monotonic())
      checkAfter(notified ? DEBOUNCE : Math.min(usual, untilRetry))
    }
  }

  const isDue = (): boolean => retryAt !== undefined && clock.monotonic() >= retryAt

  function noteRead(succeeded: boolean): void {
    if (succeeded) {
      pauses.reset()
      retryAt = undefined
    } else if (retryAt === undefined || isDue()) retryAt = clock.monotonic() + pauses.next()
  }

  function checkAfter(time: number): void {
    next?.cancel()
    if (!closed) next = clock.after(time, () => void check())
  }

  function notify(): void {
    if (notified) return
    notified = true
    if (!checking) checkAfter(DEBOUNCE)
  }

  function unwatch(): void {
    for (const watcher of watchers) watcher.close()
    watchers = []
  }

  function listen(paths: readonly string[]): void {
    unwatch()
    if (closed) return
    const names = paths.map((path) => basename(path))
    // What is written to other files of the folder, such as a log, changes nothing here. A rename may: a link can become another.
    const onEvent = (event: string, name: string | null): void => {
      if (event === 'rename' || name === null || names.includes(name)) notify()
    }
    try {
      for (const folder of new Set(paths.map((path) => dirname(path)))) {
        const watcher = watch(folder, { persistent: false }, onEvent)
        watchers = [...watchers, watcher.on('error', unwatch)]
      }
    } catch {
      // The folder does not exist, or the system has no more watches. Polling covers this, and the next poll tries again.
      unwatch()
    }
  }

  void check()
  return {
    close(): void {
      closed = true
      next?.cancel()
      unwatch()
    },
  }
}

/** Types of file systems that other machines or programs change without notification: NFS, SMB (three), FUSE, 9P, Ceph. */
const REMOTE: ReadonlySet<number> = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997, 0x00c36400,
])

/** The file and what it links to, if each change causes a notification in their folders; none if there may be changes without. */
async function eventfulPaths(file: string): Promise<readonly string[]> {
  const path = resolve(file)
  try {
    const target = await realpath(path)
    const linked = (await realpath(dirname(path))) !== dirname(path)
    return linked || REMOTE.has((await statfs(target)).type) ? [] : [path, target]
  } catch {
    return []
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

function isError(signature: string): boolean {
  return !/^\d/.test(signature)
}
