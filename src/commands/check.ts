import { effectiveTree } from '../config/effective.ts'
import type { Loaded } from '../config/load.ts'
import { FaultyConfiguration } from '../config/whereabouts.ts'
import { writeYaml } from '../config/yaml.ts'
import { SetupError } from '../system/setup-error.ts'
import { RUNNING } from './check/addresses.ts'
import { type CheckResult, describeResult } from './check/finding.ts'
import type { CheckOutcome } from './check/part.ts'
import { examine } from './check/table.ts'
import { columnsOf, counted } from './columns.ts'
import type { CommandIo, ExitCode, ProgramIo } from './command.ts'
import { type ConfigOptions, configPath, loadedFrom } from './configuration.ts'
import { nextCommands } from './next-commands.ts'
import { stillWaiting } from './still-waiting.ts'

type CheckIo = CommandIo & Pick<ProgramIo, 'typed' | 'clock' | 'stderr'>

export interface CheckOptions extends ConfigOptions {
  readonly json?: boolean
  readonly quiet?: boolean
  /** Print the effective configuration, too. */
  readonly print?: boolean
  /** Test only what a reload reads, without the files of passwords. */
  readonly reload?: boolean
  /** Request these paths of the device. */
  readonly pages?: readonly string[]
  /** Post to this path of the device, twice. */
  readonly uploads?: string
}

/**
 * Prints whether Postern can start, then the results of `check/table.ts`, problems first. Exit code 0 if no check fails, even with warnings; 2
 * if `serve` would not start because of its configuration or files; 1 if only other checks fail.
 */
export async function checkCommand(options: CheckOptions, io: CheckIo): Promise<ExitCode> {
  const { json = false, quiet = false, print = false, reload = false, uploads, pages = [] } = options
  const loaded = readConfig(options, io)
  if (loaded instanceof SetupError) {
    io.stdout.write(document(null, loaded.problems.map(configurationProblem)))
    return 2
  }
  const { config, tree, locationOf } = loaded
  const { clock } = io
  const asked = { config, file: configPath(options, io), places: io, clock, pages, uploads }
  const during = <T>(name: string, result: Promise<T>): Promise<T> =>
    quiet ? result : stillWaiting(name, result, io)
  const outcomes = await Array.fromAsync(examine(asked, reload, locationOf, during))
  const results = outcomes.map(({ result }) => result).filter(({ result }) => !quiet || result !== 'ok')
  if (json) io.stdout.write(document(effectiveTree(tree), results))
  else {
    if (!quiet) io.stdout.write(`${verdictOf(outcomes, options, io)}\n`)
    for (const kind of ['failed', 'warning', 'ok'])
      for (const result of results.filter((each) => each.result === kind))
        io.stdout.write(describeResult(result, columnsOf(io.stdout)))
    if (print) io.stdout.write(`\n${writeYaml(effectiveTree(tree))}`)
  }
  return outcomes.map(({ exitCode }) => exitCode).reduce((worst, each) => (each > worst ? each : worst), 0)
}

/** The first line: whether Postern can start, and the command that starts it. */
function verdictOf(outcomes: readonly CheckOutcome[], options: CheckOptions, io: CheckIo): string {
  const count = (kind: CheckResult['result']): number =>
    outcomes.filter(({ result }) => result.result === kind).length
  const [failed, warnings] = [count('failed'), count('warning')]
  if (failed > 0) return toMend(failed)
  const ready = warnings === 0 ? 'Ready' : `Ready, with ${counted(warnings, 'warning')}`
  if (options.reload === true) return `${ready}: a reload takes this configuration`
  if (outcomes.some(({ row }) => row === RUNNING)) return `${ready}: Postern is running`
  return `${ready}: start it with ${nextCommands(options, io).serve}`
}

const toMend = (problems: number): string => `${counted(problems, 'thing')} to mend:`

/**
 * The configuration; for `--json` the error of an unusable one, so that the document can list its problems. Otherwise throws that error, and
 * says first how many problems it lists.
 */
function readConfig(options: CheckOptions, io: CommandIo): Loaded | SetupError {
  try {
    return loadedFrom(options, io)
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    if (options.json === true) return error
    if (error instanceof FaultyConfiguration && error.problems.length > 1 && options.quiet !== true)
      io.stderr.write(`${toMend(error.problems.length)}\n`)
    throw error
  }
}

function configurationProblem(problem: string): CheckResult {
  return {
    name: 'configuration',
    result: 'failed',
    message: problem,
    meaning: 'serve does not start, and a running Postern keeps the configuration that it has',
    remedy: 'correct the value; deploy/configuration.md describes every key',
  }
}

function document(configuration: unknown, checks: readonly CheckResult[]): string {
  return `${JSON.stringify({ checks, configuration }, null, 2)}\n`
}
