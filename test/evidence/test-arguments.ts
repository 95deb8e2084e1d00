import { join } from 'node:path'

/** The reporter that writes a run down. */
export const REPORTER: string = join(import.meta.dirname, 'results-reporter.ts')

/** As in vitest.config.ts, which an option `--reporter` overrides. */
const USUAL = [join(import.meta.dirname, '../support/run-notes.ts'), 'default']

interface TestArguments {
  /** For vitest. */
  readonly args: readonly string[]
  /** What the user asked for: the same without what is added here. */
  readonly asked: readonly string[]
  /** The file in which the run is written down. */
  readonly results?: string
}

/**
 * Takes `--results FILE` (or `--results=FILE`) out of the arguments of `npm test`, and adds the reporter that writes it, beside the others.
 *
 * @throws Error without a name, or with two
 */
export function testArguments(given: readonly string[]): TestArguments {
  const args: string[] = []
  const files: string[] = []
  for (let at = 0; at < given.length; at++) {
    const [, file = given[at + 1]] = /^--results(?:=(.*))?$/s.exec(given[at] ?? '') ?? [undefined, null]
    if (file === null) {
      args.push(given[at] ?? '')
      continue
    }
    if (file === undefined || file === '' || file.startsWith('--'))
      throw new Error('--results takes a file: npm test -- --results FILE')
    files.push(file)
    if (given[at] === '--results') at++
  }
  const [results, ...more] = files
  if (results === undefined) return { args, asked: args }
  if (more.length > 0) throw new Error(`one file is enough: --results ${files.join(' --results ')}`)
  const usual = args.some((each) => /^--reporters?(?:=|$)/.test(each)) ? [] : USUAL
  const added = [...usual, REPORTER].map((name) => `--reporter=${name}`)
  return { args: [...args, ...added], asked: args, results }
}
