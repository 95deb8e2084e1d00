import { existsSync, mkdirSync, renameSync } from 'node:fs'
import { dirname } from 'node:path'
import { codeOf } from './setup-error.ts'

/**
 * Makes a folder of our own, 0700, and those above it that are missing. An existing one is left as it is. Node's own
 * `recursive` never ends on file systems that take no folders, such as /proc.
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

/** Moves a file that cannot be used out of the way, under a dated name that no file has, and returns that name. */
export function setAside(path: string, fault: string, wall: number): string {
  const stem = `${path}.${fault}-${new Date(wall).toISOString().replaceAll(':', '-')}`
  let name = stem
  for (let i = 2; existsSync(name); i++) name = `${stem}-${i}`
  renameSync(path, name)
  return name
}
