import { readFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Source } from '../../deploy/build/source.ts'
import { joinResults } from './join-results.ts'
import type { Results } from './results.ts'
import { parseResults } from './results-file.ts'

/**
 * Reads test runs for the release of `source`, as one. Undefined without a file.
 *
 * @throws Error for a file that is none of `npm test -- --results`, is of other sources, or is the same run as another one
 */
export async function readResults(
  files: readonly string[],
  source: Pick<Source, 'commit' | 'changed'>,
): Promise<Results | undefined> {
  const runs = await Promise.all(files.map((file) => readRun(file, source)))
  for (const [at, run] of runs.entries()) {
    const same = runs.findIndex((other) => isDeepStrictEqual(other, run))
    if (same < at) throw new Error(`${files[at]} is the same run as ${files[same]}: leave one out`)
  }
  const [first, ...rest] = runs
  return first === undefined ? undefined : joinResults([first, ...rest])
}

async function readRun(file: string, source: Pick<Source, 'commit' | 'changed'>): Promise<Results> {
  const run = parseResults(await readFile(file, 'utf8'))
  if (run === undefined)
    throw new Error(`${file} is no file of npm test -- --results FILE: make it with that`)
  checkSource(run, source, file)
  return run
}

/** Throws if the run was of other files than those of `source`: its figures say nothing about these. */
function checkSource(
  { commit, changed }: Results,
  source: Pick<Source, 'commit' | 'changed'>,
  file: string,
): void {
  const again = 'run npm test -- --results FILE again, on this checkout'
  if (commit !== source.commit)
    throw new Error(`${file} is of commit ${commit}, and the release is of ${source.commit}: ${again}`)
  if (changed && !source.changed)
    throw new Error(`${file} is of a checkout with changed files, and the release of ${commit}: ${again}`)
  if (!changed && source.changed)
    throw new Error(
      `${file} is of ${commit}, and this checkout has changed files: commit them, then ${again}`,
    )
}

/** What the release prints about the run beside it. */
export function runSentence(results: Results | undefined): string {
  if (results === undefined)
    return 'Evidence: "not run here". To put a test run beside the release: npm test -- --results FILE, then npm run release -- --results FILE'
  const { passed, failed, skipped } = results
  const counts = `${passed} tests passed, ${failed} failed, ${skipped} skipped`
  return failed > 0 ? `\n*** EVIDENCE WITH FAILED TESTS: ${counts}. ***` : `Evidence: ${counts}`
}
