import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Where the folder with the bundle's `dist/` stands in the environment of the tests. */
export const BUNDLE_VARIABLE = 'POSTERN_TEST_BUNDLE'

/**
 * Makes the bundle once for all test files, because a process of the bundle takes a third of the processor time to start
 * that one of the source takes. Every user may read it: some tests start it as another one.
 */
export default function makeBundle(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bundle-'))
  chmodSync(folder, 0o755)
  execFileSync(process.execPath, [join(import.meta.dirname, '../../deploy/bundle.ts'), join(folder, 'dist')])
  process.env[BUNDLE_VARIABLE] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
