import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { isWithheld, reasonOf } from '../../system/node-permission.ts'
import { codeOf, SetupError } from '../../system/setup-error.ts'

/** A file to write. */
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
      const draft = `${path}.${randomBytes(6).toString('hex')}`
      try {
        writeFlushed(draft, text)
        shareWithFolder(draft)
        putInPlace(draft, path)
        written.push(path)
      } catch (error) {
        throw new SetupError(`cannot write ${path}: ${reasonFor(error)}`, { cause: error })
      } finally {
        rmSync(draft, { force: true })
      }
    }
  } catch (error) {
    for (const path of written) rmSync(path, { force: true })
    throw error
  }
}

/** Under its permission model Node writes the file and then refuses the flush; that error is ignored. */
function writeFlushed(path: string, text: string): void {
  try {
    writeFileSync(path, text, { mode: 0o600, flag: 'wx', flush: true })
  } catch (error) {
    if (!isWithheld(error) || !existsSync(path)) throw error
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
  if (own.uid !== 0 || own.gid === folder.gid) return
  chownSync(path, own.uid, folder.gid)
  chmodSync(path, 0o640)
}

function reasonFor(error: unknown): string {
  return codeOf(error) === 'EEXIST' ? 'it exists, and init overwrites nothing' : reasonOf(error)
}
