import { mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { enterCgroups } from '../../bench/cgroup.ts'

/** A cgroup for one program and all that it starts: a folder in each hierarchy that systemd uses. */
export interface Cgroup {
  /** The beginning of a command that starts its further arguments in this cgroup, as the same process. */
  readonly prefix: readonly string[]
  /** Removes it, when every process in it has ended. */
  readonly remove: () => void
}

/**
 * Makes a cgroup at the top of each hierarchy that systemd uses: cgroup v2, and v1's own of systemd. Two systemds in one cgroup would share
 * the groups of all units of the same name: one removes what it finds empty, and the other cannot start a process in it any more.
 */
export function makeCgroup(name: string): Cgroup {
  const folders = hierarchies().map((hierarchy) => join(hierarchy, name))
  for (const folder of folders) mkdirSync(folder)
  return {
    prefix: enterCgroups(folders),
    remove() {
      for (const folder of folders) removeFolder(folder)
    },
  }
}

/** Where these hierarchies are mounted. */
function hierarchies(): readonly string[] {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , type, options = '']) => type === 'cgroup2' || options.split(',').includes('name=systemd'))
    .map(([, folder = '']) => folder)
}

/** A cgroup goes by `rmdir`, after the ones in it; its files cannot be removed. */
function removeFolder(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeFolder(join(folder, entry.name))
  }
  rmdirSync(folder)
}
