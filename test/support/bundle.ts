import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The environment variable that holds the folder for the bundle. */
export const BUNDLE_VARIABLE = 'POSTERN_TEST_BUNDLE'

/**
 * Makes the folder of the bundle, which is readable by every user, because some tests start the bundle as another user. A run within a
 * test uses that of the run around it.
 */
export default function makeFolder(): (() => void) | undefined {
  if (process.env[BUNDLE_VARIABLE] !== undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'postern-bundle-'))
  chmodSync(folder, 0o755)
  process.env[BUNDLE_VARIABLE] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

/**
 * A folder with the bundle in `dist/`, as it is installed. All tests share it, so none may change it. The first test of all files that
 * asks makes it, and the others wait: a process starts from it in a third of the processor time that the source takes.
 */
export function installedBundle(): string {
  const folder = process.env[BUNDLE_VARIABLE]
  if (folder === undefined) throw new Error('Vitest makes the folder of the bundle before the tests')
  const [made, making] = [join(folder, 'made'), join(folder, 'making')]
  while (!existsSync(made)) {
    if (isFirst(making)) makeBundle(join(folder, 'dist'), { made, making })
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
  }
  return folder
}

/** Whether this process has made the folder, and no other one. */
function isFirst(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch {
    return false
  }
}

/** Makes it, unless the one before has done so by now. After a failed attempt the next test that asks tries again. */
function makeBundle(dist: string, { made, making }: Readonly<Record<'made' | 'making', string>>): void {
  try {
    if (existsSync(made)) return
    execFileSync(process.execPath, [join(import.meta.dirname, '../../deploy/build/bundle.ts'), dist])
    writeFileSync(made, '')
  } finally {
    rmdirSync(making)
  }
}
