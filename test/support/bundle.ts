import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The environment variable that holds the folder with the bundle's `dist/`. */
export const BUNDLE_VARIABLE = 'POSTERN_TEST_BUNDLE'

/**
 * Makes the bundle once for all test files: a process starts from it in a third of the processor time that the source
 * takes. The folder is readable by every user, because some tests start the bundle as another user. A run within a test uses that of the
 * run around it.
 */
export default function makeBundle(): (() => void) | undefined {
  if (process.env[BUNDLE_VARIABLE] !== undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'postern-bundle-'))
  chmodSync(folder, 0o755)
  execFileSync(process.execPath, [
    join(import.meta.dirname, '../../deploy/build/bundle.ts'),
    join(folder, 'dist'),
  ])
  process.env[BUNDLE_VARIABLE] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
