import { say } from '../../bench/run-program.ts'
import type { FixedMutant, Found } from './fixed.ts'
import { judge, NO_TEST, type Runner } from './judge.ts'
import { type Choice, readSubject } from './subject.ts'

/** A mutant of the set, and what came of it now. */
export interface Judged extends Found {
  readonly outcome: FixedMutant['outcome']
}

/** The tests of the promises, by what their paths contain: they try what no test near the file kills. */
const PROMISES = ['test/contract/', 'test/hardening/']

/**
 * Judges the mutants of a set, file by file: by the tests near the file, then by those of the promises.
 *
 * @returns what came of each, and the files that could not be judged, with the reason
 */
export async function judgeFound(
  found: readonly Found[],
  runner: Runner,
  wait: number,
  root: string,
): Promise<{ readonly judged: readonly Judged[]; readonly failures: readonly string[] }> {
  const judged: Judged[] = []
  const failures: string[] = []
  for (const [file, each] of Map.groupBy(found, ({ file }) => file)) {
    let left = each
    for (const tests of [undefined, PROMISES]) {
      if (left.length === 0) break
      try {
        const killed = await killedBy(left, { sample: Number.POSITIVE_INFINITY, tests }, runner, wait, root)
        judged.push(
          ...left.filter((one) => killed.has(one)).map((one) => ({ ...one, outcome: 'killed' as const })),
        )
        left = left.filter((one) => !killed.has(one))
      } catch (error) {
        runner.kill()
        const reason = error instanceof Error ? error.message : String(error)
        if (tests !== undefined || reason !== NO_TEST) failures.push(`${file}: ${reason}`)
      }
    }
    for (const { mutant } of left) say(`LIVED ${file}:${mutant.line} ${mutant.change}`)
    judged.push(...left.map((one) => ({ ...one, outcome: 'lived' as const })))
    say(`${judged.length}/${found.length} ${file}`)
  }
  return { judged, failures }
}

async function killedBy(
  found: readonly Found[],
  choice: Choice,
  runner: Runner,
  wait: number,
  root: string,
): Promise<ReadonlySet<Found>> {
  const [{ file = '' } = {}] = found
  const subject = readSubject(file, choice, root)
  const killed = new Set<Found>()
  const mutants = found.map(({ mutant }) => mutant)
  for await (const { mutant, outcome } of judge({ ...subject, mutants }, runner, wait)) {
    const one = found.find((each) => each.mutant === mutant)
    if (outcome !== 'lived' && one !== undefined) killed.add(one)
  }
  return killed
}
