import { execFile } from 'node:child_process'
import process from 'node:process'
import { promisify } from 'node:util'
import type { Processor } from './executable.ts'

/** The names of binutils for the `strip` of each processor. */
const STRIPS: Readonly<Record<Processor, string>> = {
  x64: 'x86_64-linux-gnu-strip',
  arm64: 'aarch64-linux-gnu-strip',
}

/**
 * Removes symbols and debug information from a program, with the `strip` of binutils for its processor. Resolves to undefined, or to the
 * name of the tool that is not installed: then the program stays as it is.
 */
export async function stripProgram(file: string, processor: Processor): Promise<string | undefined> {
  const own = STRIPS[processor]
  // Without a prefix, it reads the programs of this machine only.
  for (const tool of processor === process.arch ? [own, 'strip'] : [own]) {
    try {
      await promisify(execFile)(tool, ['--strip-all', file])
      return undefined
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  return own
}
