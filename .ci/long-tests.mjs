// The long tests (.ci/long.json), and which of them a change touches.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/**
 * Each with the tests that it names (a file, or a folder with its last slash), why they take long, and the parts of the source that they
 * watch besides themselves.
 * @type {readonly { readonly tests: string, readonly because: string, readonly watches: readonly string[] }[]}
 */
export const LONG_TESTS = JSON.parse(readFileSync(join(root, '.ci/long.json'), 'utf8'))

/** What every long test watches. */
const ALWAYS = ['package-lock.json', 'vitest.config.ts']

/**
 * The long tests that changed files (paths from the root) touch.
 * @param {readonly string[]} changed
 * @returns {readonly string[]}
 */
export function touchedBy(changed) {
  const touches = ({ tests, watches }) =>
    [...ALWAYS, tests, ...watches].some((watched) => changed.some((path) => path.startsWith(watched)))
  return LONG_TESTS.filter(touches).map(({ tests }) => tests)
}

/**
 * The files that have changed since everything was run, at the commit in `.ci/whole`.
 * @returns {readonly string[] | undefined} undefined: there is no such file, or this clone does not have that commit
 */
export function changedSinceWhole() {
  try {
    const whole = readFileSync(join(root, '.ci/whole'), 'utf8').trim()
    const options = { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }
    return execFileSync('git', ['diff', '--name-only', whole], options).split('\n').filter(Boolean)
  } catch {
    return undefined
  }
}
