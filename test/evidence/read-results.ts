import { readFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Source } from '../../deploy/build/source.ts'
import { checkSource, joinResults, parseResults, type Results } from './results.ts'

/**
 * Reads test runs for the release of `source`, as one. Undefined without a file. Rejects if a file is none of `npm test -- --results`, or is of
 * other sources.
 */
export async function readResults(
  files: readonly string[],
  source: Pick<Source, 'commit' | 'changed'>,
): Promise<Results | undefined> {
  const runs = await Promise.all(
    files.map(async (file) => {
      const results = parseResults(await readFile(file, 'utf8'), file)
      checkSource(results, source, file)
      return results
    }),
  )
  for (const [at, run] of runs.entries()) {
    const same = runs.findIndex((other) => isDeepStrictEqual(other, run))
    if (same < at) throw new Error(`${files[at]} is the same run as ${files[same]}: leave one out`)
  }
  const [first, ...rest] = runs
  return first === undefined ? undefined : joinResults([first, ...rest])
}

/** What a vendor must know about the run beside the release. */
export function runSentence(results: Results | undefined): string {
  if (results === undefined)
    return 'Evidence: "not run here". To put a test run beside the release: npm test -- --results FILE, then npm run release -- --results FILE'
  const { passed, failed, skipped } = results
  const counts = `${passed} tests passed, ${failed} failed, ${skipped} were skipped`
  return failed > 0 ? `\n*** EVIDENCE WITH FAILED TESTS: ${counts}. ***` : `Evidence: ${counts}`
}
