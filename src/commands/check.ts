import { effectiveTree } from '../config/effective.ts'
import type { Loaded } from '../config/load.ts'
import { writeYaml } from '../config/yaml.ts'
import { SetupError } from '../system/setup-error.ts'
import { type CheckResult, describeResult } from './check/finding.ts'
import { examine } from './check/table.ts'
import { columnsOf } from './columns.ts'
import type { CommandIo, ExitCode } from './command.ts'
import { type ConfigOptions, configPath, loadedFrom } from './configuration.ts'

export interface CheckOptions extends ConfigOptions {
  readonly json?: boolean
  readonly quiet?: boolean
  /** Test only what a reload reads, without the files of passwords. */
  readonly reload?: boolean
  /** Request these paths of the device. */
  readonly pages?: readonly string[]
  /** Post to this path of the device, twice. */
  readonly uploads?: string
}

/**
 * Prints the effective configuration with masked secrets, and the results of `check/table.ts`. Exit code 0 if no check fails, even with
 * warnings; 2 if `serve` would not start because of its configuration or files; 1 if only other checks fail.
 */
export async function checkCommand(options: CheckOptions, io: CommandIo): Promise<ExitCode> {
  const { json = false, quiet = false, reload = false, uploads, pages = [] } = options
  const loaded = readConfig(options, io)
  if (loaded instanceof SetupError) {
    io.stdout.write(document(null, loaded.problems.map(configurationProblem)))
    return 2
  }
  const { config, tree, locationOf } = loaded
  const asked = { config, file: configPath(options, io), places: io, pages, uploads }
  const outcomes = examine(asked, reload, locationOf)
  if (!json && !quiet) io.stdout.write(`${writeYaml(effectiveTree(tree))}\n`)
  const results: CheckResult[] = []
  let worst: ExitCode = 0
  for await (const { result, exitCode } of outcomes) {
    if (exitCode > worst) worst = exitCode
    if (quiet && result.result === 'ok') continue
    results.push(result)
    if (!json) io.stdout.write(describeResult(result, columnsOf(io.stdout)))
  }
  if (json) io.stdout.write(document(effectiveTree(tree), results))
  return worst
}

/** The configuration; for `--json` the error of an unusable one, so that the document can list its problems. */
function readConfig(options: CheckOptions, io: CommandIo): Loaded | SetupError {
  try {
    return loadedFrom(options, io)
  } catch (error) {
    if (options.json === true && error instanceof SetupError) return error
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
