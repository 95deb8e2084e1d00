import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadTlsMaterial, selfSignedPaths } from '../../src/listen/tls-material.ts'

/** Where the folder with the shared pair stands in the environment of the tests. */
const PAIR_VARIABLE = 'POSTERN_TEST_PAIR'

/**
 * Makes a self-signed pair once for all test files, as `tls: auto` makes it: to make one takes twice the processor time
 * of the rest of a sidecar's start.
 */
export default async function makeSharedPair(): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-pair-'))
  await loadTlsMaterial('auto', folder)
  process.env[PAIR_VARIABLE] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

/** The shared pair for `listen.tls`; a program that is no test has none, and each of its sidecars makes its own. */
export function sharedPair(): { readonly cert: string; readonly key: string } | 'auto' {
  const folder = process.env[PAIR_VARIABLE]
  return folder === undefined ? 'auto' : selfSignedPaths(folder)
}
