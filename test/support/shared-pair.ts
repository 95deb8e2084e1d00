import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadTlsMaterial, selfSignedPaths } from '../../src/listen/tls-material.ts'
import { machineNames } from '../../src/system/machine-names.ts'
import { stillClock } from './clock.ts'

/** The environment variable that holds the folder with the shared pair. */
const PAIR_VARIABLE = 'POSTERN_TEST_PAIR'

/**
 * Makes a self-signed pair once for all test files, as `tls: auto` does. To make one takes twice the processor time of
 * the rest of a sidecar's start.
 */
export default async function makeSharedPair(): Promise<() => void> {
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
