import { statSync } from 'node:fs'
import { type ConfigFile, type Loaded, loadWithLocations, readConfigFile } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { codeOf, firstOf, isWithheld, SetupError } from '../system/setup-error.ts'
import { shellWord } from '../system/text.ts'
import type { CommandIo } from './command.ts'
import { OWN_CONFIG } from './help.ts'
import { instanceOf, unknownInstance } from './instance.ts'

export interface ConfigOptions {
  readonly config?: string
  /** `config` is `postern.yaml` of the working directory, so a command line that is typed there need not name it. */
  readonly isOwn?: true
  /** The name of one of several devices of this host, in place of `config`. */
  readonly instance?: string
  /** `key=value` each. They override the environment and the file. */
  readonly set: readonly string[]
}

/**
 * A command line to copy that finds the same configuration: the words that start the program, then `words`, then these flags. A value of
 * `--set` may be a secret, so only the value of `state_dir` is shown.
 */
export function withFlags(
  program: string,
  words: string,
  { instance, config, isOwn, set }: ConfigOptions,
): string {
  const flags = [
    ...(instance === undefined ? [] : ['--instance', instance]),
    ...(config === undefined || isOwn ? [] : ['--config', config]),
    ...set.flatMap((each) => ['--set', each.startsWith('state_dir=') ? each : `${each.split('=', 1)}=...`]),
  ]
  return [program, words, ...flags.map(shellWord)].join(' ')
}

type Surroundings = Pick<CommandIo, 'env' | 'defaultConfig' | 'defaultState'>

/**
 * The path of the configuration file: from `--instance` or `--config`, then `POSTERN_CONFIG`, then the default file, if it exists.
 * Undefined if there is none, or if `POSTERN_CONFIG` is empty: then environment and flags are the whole configuration. Throws a
 * `SetupError` for an instance without a file.
 */
export function configPath(
  { config, instance }: Pick<ConfigOptions, 'config' | 'instance'>,
  io: Surroundings,
): string | undefined {
  const { env, defaultConfig } = io
  if (instance !== undefined) {
    const found = instanceOf(instance, io)
    if (!exists(found.config)) throw unknownInstance(found, io)
    return found.config
  }
  if (config !== undefined) return config
  if (env.POSTERN_CONFIG !== undefined) return env.POSTERN_CONFIG || undefined
  return defaultConfig !== undefined && exists(defaultConfig) ? defaultConfig : undefined
}

/** Whether a file exists. Also true if this process may not search its folder: then reading the file reports the reason. */
function exists(path: string): boolean {
  try {
    statSync(path)
    return true
  } catch (error) {
    return !isWithheld(error) && !['ENOENT', 'ENOTDIR'].includes(codeOf(error))
  }
}

/** Loads the configuration from the file, the environment and the flags. Throws `SetupError`. */
export function configFrom(options: ConfigOptions, io: Surroundings): Config {
  return loadedFrom(options, io).config
}

/** As `configFrom`, with the locations of the values. `read` reads the file. */
export function loadedFrom(
  options: ConfigOptions,
  io: Surroundings,
  read: (path: string) => ConfigFile = readConfigFile,
): Loaded {
  const path = configPath(options, io)
  const { env } = io
  const sets = [...stateOf(options, io), ...options.set]
  if (path !== undefined) return loadWithLocations({ file: read(path), env, sets })
  try {
    return loadWithLocations({ env, sets })
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    throw lacksKey(error) ? new SetupError([noFile(io), ...error.problems]) : error
  }
}

/** An instance always has its own state folder: a file that was copied from another instance may name the folder of that instance. */
function stateOf({ instance }: ConfigOptions, io: Surroundings): readonly string[] {
  return instance === undefined ? [] : [`state_dir=${instanceOf(instance, io).stateDir}`]
}

/** Whether a key without a default is missing, which the file would set. */
function lacksKey({ problems }: SetupError): boolean {
  return problems.some((problem) => /^(?:upstream\.url|password): is missing/.test(problem))
}

function noFile({ env, defaultConfig }: Surroundings): string {
  const absent =
    env.POSTERN_CONFIG === ''
      ? ', because POSTERN_CONFIG is empty'
      : defaultConfig === undefined
        ? ''
        : `, and there is neither a ${OWN_CONFIG} in this folder nor ${defaultConfig}`
  return `no configuration file is named${absent}: name one with --config, or write one with postern init`
}

/** Puts the location where the key is set before each problem of an error that names a key. Returns any other error unchanged. */
export function located(error: unknown, locationOf: Loaded['locationOf']): unknown {
  const first = firstOf(error)
  const location = first instanceof SetupError && first.key !== undefined ? locationOf(first.key) : undefined
  if (!(first instanceof SetupError) || location === undefined) return error
  const { problems, exitCode } = first
  return new SetupError(
    problems.map((problem) => `${location}: ${problem}`),
    { exitCode, cause: error },
  )
}
