import { warningsOf } from '../compose/config-warnings.ts'
import { effectiveTree } from '../config/effective.ts'
import type { Loaded } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { writeYaml } from '../config/yaml.ts'
import { SetupError } from '../system/setup-error.ts'
import { addressChecks } from './check/address-checks.ts'
import { uploadCheck } from './check/client-requests.ts'
import { deviceChecks, headerChecks, namedPageCheck } from './check/device-checks.ts'
import { certificateCheck, memoryCheck, pageChecks, passwordCheck, stateCheck } from './check/file-checks.ts'
import { type Check, type CheckResult, describeResult, runCheck } from './check/finding.ts'
import { neighbourChecks } from './check/neighbour-check.ts'
import { storeChecks } from './check/store-check.ts'
import { columnsOf } from './columns.ts'
import type { CommandIo, ExitCode } from './command.ts'
import { type ConfigOptions, configPath, loadedFrom } from './configuration.ts'

export interface CheckOptions extends ConfigOptions {
  readonly json?: boolean
  readonly quiet?: boolean
  /** Test only what a reload of the running sidecar reads. */
  readonly reload?: boolean
  /** Request these paths of the device. */
  readonly pages?: readonly string[]
  /** Post to this path of the device, twice. */
  readonly uploads?: string
}

/**
 * Prints the effective configuration with masked secrets. Then checks the password source, the certificate, the folders that are
 * written to, the shared store, both addresses, the header files and the device. With `pages` it also requests these, and with
 * `uploads` it tries how the device takes a POST. Exit code 0 if all checks pass, with or without warnings; 2 if `serve` would not start
 * because of its configuration or files; 1 if only other checks fail.
 */
export async function checkCommand(options: CheckOptions, io: CommandIo): Promise<ExitCode> {
  const { json = false, quiet = false, reload = false, uploads, pages = [] } = options
  const results: CheckResult[] = []
  const loaded = readConfig(options, io)
  if (loaded instanceof SetupError) {
    const checks = loaded.problems.map(configurationProblem)
    io.stdout.write(document(null, checks))
    return 2
  }
  const { config, tree, locationOf } = loaded
  const asked = [
    ...pages.map((page) => namedPageCheck(config, page)),
    ...(uploads === undefined ? [] : [uploadCheck(config, uploads)]),
  ]
  if (!json && !quiet) io.stdout.write(`${writeYaml(effectiveTree(tree))}\n`)
  const report = (result: CheckResult): void => {
    if (quiet && result.result === 'ok') return
    results.push(result)
    if (!json) io.stdout.write(describeResult(result, columnsOf(io.stdout)))
  }
  let worst: ExitCode = 0
  for (const check of [
    ...(reload
      ? reloadChecks(config)
      : checksOf(config, neighbourChecks(config, configPath(options, io), io))),
    ...asked,
  ]) {
    const { result, exitCode } = await runCheck(check, locationOf)
    report(result)
    if (worst !== 2 && exitCode !== 0) worst = exitCode
  }
  for (const { key, file, reason, meaning, remedy } of reload ? [] : await warningsOf(config)) {
    const message = file === undefined ? reason : `${file}: ${reason}`
    report({ name: key, result: 'warning', message, meaning, remedy })
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

/** The files that a reload reads. Others may be closed to the process that reloads: systemd gives it no credentials. */
function reloadChecks(config: Config): readonly Check[] {
  return [certificateCheck(config), ...headerChecks(config)]
}

function checksOf(config: Config, ofNeighbours: readonly Check[]): readonly Check[] {
  return [
    passwordCheck(config),
    certificateCheck(config),
    stateCheck(config),
    memoryCheck(config),
    ...pageChecks(config),
    ...storeChecks(config),
    ...addressChecks(config),
    ...ofNeighbours,
    ...deviceChecks(config),
  ]
}

function document(configuration: unknown, checks: readonly CheckResult[]): string {
  return `${JSON.stringify({ checks, configuration }, null, 2)}\n`
}
