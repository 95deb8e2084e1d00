import { chmodSync, chownSync, existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { writeFlushed } from '../../system/own-files.ts'
import { codeOf, reasonOf, SetupError } from '../../system/setup-error.ts'

export interface NewFile {
  readonly path: string
  readonly text: string
}

/**
 * Writes files that must not exist yet, all or none. A file appears under its name only when it is complete. Its mode is 0600; if
 * root writes into a folder of another group, that group can read the file (0640), as a service that runs as an own user
 * needs. Throws `SetupError`.
 */
export function writeNewFiles(files: readonly NewFile[]): void {
  const written: string[] = []
  try {
    for (const { path, text } of files) {
      try {
        writeNewFile(path, text)
      } catch (error) {
        throw new SetupError(`cannot write ${path}: ${reasonFor(error)}`, { cause: error })
      }
      written.push(path)
    }
  } catch (error) {
    for (const path of written) rmSync(path, { force: true })
    throw error
  }
}

function writeNewFile(path: string, text: string): void {
  const draft = writeFlushed(path, text)
  try {
    shareWithFolder(draft)
    putInPlace(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}

/** Unlike a rename, a link replaces no file that another program made meanwhile. FAT has no links. */
function putInPlace(draft: string, path: string): void {
  try {
    linkSync(draft, path)
  } catch (error) {
    if (!['EPERM', 'ENOTSUP', 'ENOSYS'].includes(codeOf(error)) || existsSync(path)) throw error
    renameSync(draft, path)
  }
}

function shareWithFolder(path: string): void {
  const [own, folder] = [statSync(path), statSync(dirname(path))]
  if (own.uid !== 0 || folder.gid === 0) return
  chownSync(path, own.uid, folder.gid)
  chmodSync(path, 0o640)
}

function reasonFor(error: unknown): string {
  return codeOf(error) === 'EEXIST' ? 'it exists, and init overwrites nothing' : reasonOf(error)
}
