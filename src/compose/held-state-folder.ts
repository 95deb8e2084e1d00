import { readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { ensureFolder } from '../system/own-files.ts'
import { SetupError } from '../system/setup-error.ts'
import { lockStateFolder } from '../tokens/state-folder.ts'

/** How long the start waits for a sidecar that is about to end (ms). */
const PATIENCE = 1000

/** The longest text that is read (bytes). A holder writes less. */
const LONGEST_HOLDER = 400

/**
 * Locks `state_dir` for as long as the sidecar runs, wherever its tokens are: two sidecars in one folder would replace each other's
 * certificate and learned figures. Returns a function that releases it. Throws a `SetupError` that names the sidecar that runs.
 *
 * A folder that cannot be written stays unlocked. The parts that write to it report that.
 *
 * @param pid of this process
 * @param wall the present time (ms)
 */
export function holdStateFolder(dir: string, pid: number, wall: number): () => void {
  const path = join(dir, 'sidecar.lock')
  let release: (() => void) | undefined
  try {
    ensureFolder(dir)
    release = lockStateFolder(path, PATIENCE)
  } catch {
    return () => {}
  }
  if (release === undefined) {
    throw new SetupError(`another sidecar is using ${dir}${readHolder(`${path}.holder`)}`, {
      remedy: 'give each its own state_dir',
    })
  }
  writeHolder(
    `${path}.holder`,
    `process ${pid} on ${hostname()}, since ${new Date(wall).toISOString().slice(0, 19)}Z`,
  )
  return release
}

/**
 * Writes who holds the lock; in a container the host name is the container's. The file is read only while the lock is held, so the text of
 * a killed process is never read. A full disk leaves no old text either, because opening the file empties it.
 */
function writeHolder(path: string, text: string): void {
  try {
    writeFileSync(path, `${text}\n`, { mode: 0o600 })
  } catch {
    // The message of the other sidecar then does not name this one.
  }
}

/** `: ` and the holder; empty if the file has none, or only a part of it. */
function readHolder(path: string): string {
  try {
    const text = readFileSync(path, 'latin1')
    return text.length <= LONGEST_HOLDER && /^[ -~]+\n$/.test(text) ? `: ${text.trimEnd()}` : ''
  } catch {
    return ''
  }
}
