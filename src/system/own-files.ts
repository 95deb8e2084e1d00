import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { codeOf, isWithheld } from './setup-error.ts'

/**
 * Creates a folder with mode 0700, and its missing parents. An existing folder is not changed. Node's own option `recursive`
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

/** Renames an unusable file to an unused name with `fault` and the date, and returns that name. `wall` in ms. */
export function setAside(path: string, fault: string, wall: number): string {
  const stem = `${path}.${fault}-${new Date(wall).toISOString().replaceAll(':', '-')}`
  let name = stem
  for (let i = 2; existsSync(name); i++) name = `${stem}-${i}`
  renameSync(path, name)
  return name
}

/**
 * Writes a new file with mode 0600 beside `path`, under a random name, and returns that name; the caller moves it into place, so that
 * no other program reads an incomplete file. Flushes it, so that a power failure leaves no empty file. Under its permission model
 * Node writes the file and then refuses the flush; that error is ignored.
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
