import { existsSync, renameSync } from 'node:fs'

/** Moves a file that cannot be used out of the way, under a dated name that no file has, and returns that name. */
export function setAside(path: string, fault: string, wall: number): string {
  const stem = `${path}.${fault}-${new Date(wall).toISOString().replaceAll(':', '-')}`
  let name = stem
  for (let i = 2; existsSync(name); i++) name = `${stem}-${i}`
  renameSync(path, name)
  return name
}
