import { type FSWatcher, watch } from 'node:fs'
import { realpath, stat, statfs } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type { Clock, Timer } from './clock.ts'

export type FileWatch = ReturnType<typeof watchFile>

/** The polling interval (ms) of a file whose changes may cause no notification. */
const POLL_INTERVAL = 500
/** The polling interval (ms) of any other file, in case a notification was lost. It is long because each check wakes two threads. */
const CALM_INTERVAL = 30_000
/** One write causes several notifications. One check, this long (ms) after the first, covers them all. */
const DEBOUNCE = 20
/**
 * For this long (ms) after the timestamps of a file changed, each check reads the content. Timestamps are as coarse as a kernel tick, or
 * one second on some network file systems, so another write soon after may not change them.
 */
const RECHECK_TIME = 2000
/** The first pause before a retry (ms). */
const FIRST_RETRY = 1000

/** The pauses between retries of a failed read: first `FIRST_RETRY`, then twice as long each time, up to `CALM_INTERVAL`. */
export function createRetryPauses() {
  let pause = FIRST_RETRY
  return {
    /** The next pause (ms). */
    next(): number {
      const present = pause
      pause = Math.min(2 * pause, CALM_INTERVAL)
      return present
    },
    /** Call this when a read has succeeded: the next pause is the first again. */
    reset(): void {
      pause = FIRST_RETRY
    },
  }
}

/**
 * Calls `read` when the file may have changed: it was rewritten, replaced, removed or restored, or a symbolic link on its path was changed.
 * Only one call runs at a time. The watch covers the folders of the file and of its link target. A poll covers the rest: it runs often
 * where changes cause no notification, as on network file systems.
 *
 * @param read returns false if it could not read the file, for example because the process has no descriptor left. It is then called again
 *   after pauses until it succeeds, even if the file no longer changes.
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

  // A change during a check is seen by the next one. The poll guarantees that there is a next one.
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
      // The file was missing at `signature`, yet the read succeeded: it appeared in between. If it disappears again, its signature equals
      // `now`, so `now` must not be remembered.
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
    // Writes to other files of the folder, such as a log, do not matter. Any rename may: it can replace a symbolic link on the path.
    const onEvent = (event: string, name: string | null): void => {
      if (event === 'rename' || name === null || names.includes(name)) notify()
    }
    try {
      for (const folder of new Set(paths.map((path) => dirname(path)))) {
        const watcher = watch(folder, { persistent: false }, onEvent)
        watchers = [...watchers, watcher.on('error', unwatch)]
      }
    } catch {
      // The folder does not exist, or the system has no inotify watch left. The poll covers the file, and the next poll tries again.
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

/** The types of file systems in which other machines change files without a notification here: NFS, SMB (three), FUSE, 9P, Ceph. */
const REMOTE: ReadonlySet<number> = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997, 0x00c36400,
])

/** The file and its link target, if every change of them causes a notification in their folders; otherwise none. */
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

/** The metadata of a file that changes with its content, and its identity: the text changes if a link points to another file. */
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
