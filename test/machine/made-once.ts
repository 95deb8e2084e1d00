import { once } from 'node:events'
import { existsSync, watch } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeExecutable, type Processor } from '../../deploy/build/executable.ts'
import { installedBundle } from '../build/shipped.ts'

/** The processor of this machine. */
export const PROCESSOR: Processor = process.arch === 'arm64' ? 'arm64' : 'x64'

/**
 * Makes a file or folder once for all test files of a run, and resolves to its path. Who asks while another makes it waits; if that fails,
 * the next one tries. It is removed with the bundle, and none may change it.
 */
export async function madeOnce(name: string, make: (path: string) => Promise<unknown>): Promise<string> {
  const folder = installedBundle()
  const [path, making] = [join(folder, name), join(folder, `${name}.making`)]
  for (;;) {
    const watcher = watch(folder)
    try {
      const changed = once(watcher, 'change')
      const mine = await mkdir(making).then(
        () => true,
        () => false,
      )
      if (existsSync(path)) {
        if (mine) await rm(making, { recursive: true })
        return path
      }
      if (!mine) {
        await changed
        continue
      }
      try {
        await make(join(making, name))
        await rename(join(making, name), path)
      } finally {
        await rm(making, { recursive: true })
      }
      return path
    } finally {
      watcher.close()
    }
  }
}

/** The executable of the bundle, as it is published. */
export function executableFor(processor: Processor = PROCESSOR): Promise<string> {
  return madeOnce(`postern-linux-${processor}`, (path) => makeExecutable(processor, path))
}
