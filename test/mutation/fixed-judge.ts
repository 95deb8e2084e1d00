import { relative } from 'node:path'
import { say } from '../../bench/run-program.ts'
import type { FixedMutant, Found } from './fixed.ts'
import { createPacer, judge, type Runner, type Verdict } from './judge.ts'
import { readSubject } from './subject.ts'

/** A mutant of the set, and what came of it now. */
export interface Judged extends Found, Pick<FixedMutant, 'by'> {
  readonly outcome: 'killed' | 'lived'
}

/** The tests of the promises, by what their paths contain: they try what no test near the file kills. */
const PROMISES = ['test/contract/']

/**
 * Judges mutants of the set: by the tests that killed them before, then by those near the file, then by those of the promises.
 *
 * @param onJudged is told what came of those of a file
 * @returns the files that could not be judged, with the reason
 */
export async function judgeFound(
  found: readonly Found[],
  runner: Runner,
  wait: number,
  root: string,
  onJudged: (judged: readonly Judged[]) => void,
): Promise<readonly string[]> {
  const failures: string[] = []
  let done = 0
  const paceOf = createPacer(runner)
  for (const [file, each] of Map.groupBy(found, ({ file }) => file)) {
    const killers = each.flatMap(({ fixed }) => fixed.by ?? [])
    let left = each
    const killed: Judged[] = []
    try {
      for (const tests of [killers, undefined, PROMISES]) {
        if (left.length === 0 || tests?.length === 0) continue
        const subject = readSubject(file, { sample: Number.POSITIVE_INFINITY, tests }, root)
        // What killed before may have been merged into others since; a file without a test near it has those of the promises.
        if (subject.tests.length === 0) continue
        const mutants = left.map(({ mutant }) => mutant)
        for await (const verdict of judge({ ...subject, mutants }, await paceOf(subject), runner, wait)) {
          killed.push(...killedBy(verdict, left, root))
        }
        left = left.filter((one) => !killed.some(({ fixed }) => fixed === one.fixed))
      }
    } catch (error) {
      runner.kill()
      failures.push(`${file}: ${error instanceof Error ? error.message : String(error)}`)
      continue
    }
    for (const { mutant } of left) say(`LIVED ${file}:${mutant.line} ${mutant.change}`)
    onJudged([...killed, ...left.map((one) => ({ ...one, outcome: 'lived' as const }))])
    done += each.length
    say(`${done}/${found.length} ${file}`)
  }
  return failures
}

function killedBy({ mutant, outcome, file }: Verdict, found: readonly Found[], root: string): Judged[] {
  const one = found.find((each) => each.mutant === mutant)
  if (outcome === 'lived' || one === undefined) return []
  return [{ ...one, outcome: 'killed', ...(file === undefined ? {} : { by: relative(root, file) }) }]
}
