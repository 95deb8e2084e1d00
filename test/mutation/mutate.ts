import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { formatTable } from '../../bench/format.ts'
import { atEnd, runProgram, say } from '../../bench/run-program.ts'
import { readTree } from '../support/source-tree.ts'
import { draw, FIXED_SET, type FixedMutant, find, readFixedSet, textOf } from './fixed.ts'
import { type Judged, judgeFound } from './fixed-judge.ts'
import { createPacer, createRunner, judge, type Pace, type Runner, type Verdict } from './judge.ts'
import { changedFiles, readSubject, type Subject, UsageError } from './subject.ts'

const HELP = `npm run mutate -- [options] [FILE[:LINE[-LINE]]...]

Changes one thing at a time in a source file (a number, a comparison, a condition, an operator, an element, a statement)
and runs the tests near it: those of its room (of test/gate for src/gate/admit.ts), and those that import the file.
A mutant that turns no test red has lived: it lacks a test, or the code that it changed is not needed.

  FILE          a .ts or .js file under src/, whole or these lines of it
  --diff REF    the files under src/ that have changed since the branch left REF (default, if no file is named: main)
  --tests PART  instead, the test files whose path contains PART, such as --tests test/contract; may be repeated
  --sample N    at most N mutants of each file, spread evenly over it
  --fixed       the fixed set instead: 200 mutants over all rooms, each with the test that killed it when it was judged first, which
                tries it again before others do. What no test near it kills, the tests of the promises try (test/contract). One that
                lived at first is not tried again. Exits with 1 if a mutant that was killed lives now; one whose code is no more is named
  --draw SEED   draws such a set anew, and writes it to test/mutation/fixed.json; the next --fixed records what comes of each
  --wait S      how long one test may wait (20 s): what a mutant makes wait for ever fails
  --help        this

Tests that take four times as long as without a mutant, and twice this wait, are ended: that mutant is killed "by time".
The changed text stays in memory: no file is written, so a program that a test starts runs the file as it stands.
Exits with 1 if a mutant has lived, or if the tests of a file fail without one.
`

/** The longest run (ms). */
const LONGEST = 24 * 60 * 60_000

async function main(): Promise<0 | 1> {
  try {
    const options = readOptions(process.argv.slice(2))
    if (options === 'help') {
      process.stdout.write(HELP)
      return 0
    }
    if ('seed' in options) return drawSet(options.seed)
    return 'subjects' in options ? await mutate(options) : await judgeFixedSet(options.wait)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`${error.message}\nSee: npm run mutate -- --help\n`)
    return 1
  }
}

interface Options {
  readonly subjects: readonly Subject[]
  /** How long one test may wait (ms). */
  readonly wait: number
}

/** Of the fixed set. */
type FixedOptions = { readonly seed: string } | Pick<Options, 'wait'>

/** @throws UsageError */
function readOptions(args: string[]): Options | FixedOptions | 'help' {
  const { values, positionals } = parse(args)
  if (values.help) return 'help'
  const sample = Number(values.sample)
  if (!(sample >= 1)) throw new UsageError('--sample: must be 1 or more')
  const wait = 1_000 * Number(values.wait)
  if (!(wait > 0)) throw new UsageError('--wait: must be a number of seconds')
  if (values.draw !== undefined) return { seed: values.draw }
  if (values.fixed) return { wait }
  const { diff = positionals.length > 0 ? undefined : 'main', tests } = values
  const files = [...positionals, ...(diff === undefined ? [] : changedFiles(diff))]
  return { subjects: files.map((file) => readSubject(file, { sample, tests })), wait }
}

function parse(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        diff: { type: 'string' },
        tests: { type: 'string', multiple: true },
        sample: { type: 'string', default: 'Infinity' },
        fixed: { type: 'boolean', default: false },
        draw: { type: 'string' },
        wait: { type: 'string', default: '20' },
        help: { type: 'boolean', default: false },
      },
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

async function mutate({ subjects, wait }: Options): Promise<0 | 1> {
  const runner = createRunner(wait)
  atEnd(() => runner.kill())
  const paceOf = createPacer(runner)
  const rows: string[][] = []
  const sums = { killed: 0, late: 0, lived: 0 }
  for (const subject of subjects) {
    const counts = await countsOf(subject, paceOf, runner, wait)
    const { killed = '-', late = '-', lived = '-' } = counts ?? {}
    rows.push([subject.name, `${killed}`, `${late}`, `${lived}`])
    for (const outcome of ['killed', 'late', 'lived'] as const) sums[outcome] += counts?.[outcome] ?? 0
  }
  const { killed, late, lived } = sums
  process.stdout.write(`\n${formatTable(['file', 'killed', 'by time', 'lived'], rows)}\n\n`)
  process.stdout.write(`${killed + late + lived} mutants: ${killed + late} killed, ${lived} lived\n`)
  return lived > 0 || rows.some((row) => row.includes('-')) ? 1 : 0
}

const WORDS = { killed: 'killed', late: 'killed by time', lived: 'LIVED' } as const

/** Prints each mutant with what came of it; undefined: the tests fail without one. */
async function countsOf(
  { name, ...subject }: Subject,
  paceOf: (subject: Omit<Subject, 'name'>) => Promise<Pace>,
  runner: Runner,
  wait: number,
): Promise<Record<Verdict['outcome'], number> | undefined> {
  const counts = { killed: 0, late: 0, lived: 0 }
  const { length } = subject.mutants
  say(`${name}: ${length} mutants, ${subject.tests.length} test files`)
  try {
    let done = 0
    for await (const { mutant, outcome, by } of judge(subject, await paceOf(subject), runner, wait)) {
      counts[outcome] += 1
      done += 1
      const killer = by === undefined ? '' : ` (${by})`
      say(`${done}/${length} ${WORDS[outcome]} ${name}:${mutant.line} ${mutant.change}${killer}`)
    }
    return counts
  } catch (error) {
    runner.kill()
    say(`${name}: NOT JUDGED: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}

/** How many mutants a set has. */
const COUNT = 200

function drawSet(seed: string): 0 {
  const root = process.cwd()
  const set = draw(COUNT, seed, readTree(root, 'src')).map((each) => ({ ...each, outcome: 'open' as const }))
  writeFileSync(join(root, FIXED_SET), textOf(set))
  process.stdout.write(`${set.length} mutants drawn: --fixed judges them\n`)
  return 0
}

/** Judges what was killed before, and what is open: that is recorded, file by file, so that a run that is broken off loses nothing. */
async function judgeFixedSet(wait: number): Promise<0 | 1> {
  const root = process.cwd()
  let set = readFixedSet(root)
  const { found, gone } = find(
    set.filter(({ outcome }) => outcome !== 'lived'),
    root,
  )
  const runner = createRunner(wait)
  atEnd(() => runner.kill())
  const worse: Judged[] = []
  const failures = await judgeFound(found, runner, wait, root, (judged) => {
    worse.push(...judged.filter(({ fixed, outcome }) => fixed.outcome === 'killed' && outcome === 'lived'))
    const isOpen = judged.filter(({ fixed }) => fixed.outcome === 'open')
    if (isOpen.length === 0) return
    const recorded = new Map(isOpen.map(({ fixed, outcome, by }) => [fixed, { ...fixed, outcome, by }]))
    set = set.map((each) => recorded.get(each) ?? each)
    writeFileSync(join(root, FIXED_SET), textOf(set))
  })
  for (const { file, within, change } of gone) say(`GONE ${file} ${within}: ${change}`)
  for (const { file, mutant } of worse) say(`WAS KILLED, LIVES NOW ${file}:${mutant.line} ${mutant.change}`)
  for (const failure of failures) say(`NOT JUDGED ${failure}`)
  const countOf = (wanted: FixedMutant['outcome']): number =>
    set.filter(({ outcome }) => outcome === wanted).length
  process.stdout.write(
    `${set.length} mutants: ${countOf('killed') - worse.length} killed, ${countOf('lived')} lived when they were drawn, ${worse.length} live now, ${gone.length} gone\n`,
  )
  return worse.length > 0 || failures.length > 0 ? 1 : 0
}

await runProgram(main, LONGEST)
