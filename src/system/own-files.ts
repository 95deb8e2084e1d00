import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { codeOf, isWithheld } from './setup-error.ts'

/**
 * Creates a folder and its missing parents with mode 0700. An existing folder is not changed. Node's own option `recursive` is not used: it
 * never returns on file systems that allow no folders, such as /proc.
 */
export function ensureFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EEXIST') return
    const parent = dirname(path)
    if (code !== 'ENOENT' || parent === path) throw error
    ensureFolder(parent)
    mkdirSync(path, { mode: 0o700 })
  }
}

/** Renames an unusable file and returns its new path: unused, with `fault` and the time `wall` (ms since the Unix epoch). */
export function setAside(path: string, fault: string, wall: number): string {
  const stem = `${path}.${fault}-${new Date(wall).toISOString().replaceAll(':', '-')}`
  let name = stem
  for (let i = 2; existsSync(name); i++) name = `${stem}-${i}`
  renameSync(path, name)
  return name
}

/**
 * Writes a new file with mode 0600 beside `path` and returns its random path. The caller renames it to `path`, so no program ever reads an
 * incomplete file. The file is flushed to the disk, so that a power failure leaves no empty file. Under its permission model Node writes
 * the file and then refuses the flush; that error is ignored.
 */
export function writeFlushed(path: string, text: string): string {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx', flush: true })
  } catch (error) {
    if (!isWithheld(error) || !existsSync(draft)) {
      rmSync(draft, { force: true })
      throw error
    }
  }
  return draft
}
