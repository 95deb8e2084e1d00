import { execFileSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadTlsMaterial, selfSignedPaths } from '../../src/listen/tls-material.ts'
import { machineNames } from '../../src/system/machine-names.ts'
import { stillClock } from './clock.ts'

/** The environment variable that holds the folder with the bundle's `dist/`. */
export const BUNDLE_VARIABLE = 'POSTERN_TEST_BUNDLE'

/**
 * Makes the bundle once for all test files: a process starts from it in a third of the processor time that the source
 * takes. The folder is readable by every user, because some tests start the bundle as another user. A run within a test uses that of the
 * run around it.
 */
function makeBundle(): (() => void) | undefined {
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

/** The environment variable that holds the folder with the shared pair. */
const PAIR_VARIABLE = 'POSTERN_TEST_PAIR'

/**
 * Makes a self-signed pair once for all test files, as `tls: auto` does. To make one takes twice the processor time of
 * the rest of a sidecar's start.
 */
async function makeSharedPair(): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-pair-'))
  await loadTlsMaterial('auto', folder, { clock: stillClock(), machine: machineNames })
  process.env[PAIR_VARIABLE] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

/** The shared pair as a value for `listen.tls`. In a program that is no test, each sidecar makes its own. */
export function sharedPair(): { readonly cert: string; readonly key: string } | 'auto' {
  const folder = process.env[PAIR_VARIABLE]
  return folder === undefined ? 'auto' : selfSignedPaths(folder)
}

/** What Vitest makes before the tests. Returns what removes it. */
export default async function makeOnce(): Promise<() => void> {
  const removals = [makeBundle(), await makeSharedPair()]
  return () => {
    for (const remove of removals) remove?.()
  }
}
