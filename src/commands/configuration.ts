import { statSync } from 'node:fs'
import { type ConfigFile, type Loaded, loadWithLocations, readConfigFile } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { codeOf, isWithheld, SetupError } from '../system/setup-error.ts'
import type { CommandIo } from './command.ts'

export interface ConfigOptions {
  readonly config?: string
  /** `key=value` each. They override the environment and the file. */
  readonly set: readonly string[]
}

type Surroundings = Pick<CommandIo, 'env' | 'defaultConfig'>

/**
 * The path of the configuration file: `--config`, then `POSTERN_CONFIG`, then the default file, if it exists. Undefined if there is
 * none, and if `POSTERN_CONFIG` is empty: then environment and flags are the whole configuration.
 */
export function configPath(
  { config }: Pick<ConfigOptions, 'config'>,
  { env, defaultConfig }: Surroundings,
): string | undefined {
  if (config !== undefined) return config
  if (env.POSTERN_CONFIG !== undefined) return env.POSTERN_CONFIG || undefined
  return defaultConfig !== undefined && exists(defaultConfig) ? defaultConfig : undefined
}

/** Whether a file exists. Also true if only its folder may not be searched: then reading it reports the reason. */
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

/** The same, with the locations of its values. `read` reads the file. */
export function loadedFrom(
  options: ConfigOptions,
  io: Surroundings,
  read: (path: string) => ConfigFile = readConfigFile,
): Loaded {
  const path = configPath(options, io)
  const { env } = io
  if (path !== undefined) return loadWithLocations({ file: read(path), env, sets: options.set })
  try {
    return loadWithLocations({ env, sets: options.set })
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    throw lacksKey(error) ? new SetupError([...error.problems, noFile(io)]) : error
  }
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
        : `, and there is no ${defaultConfig}`
  return `no configuration file is named${absent}: name one with --config, or write one with postern init`
}

/** An error that names a key, with the location where the key is set before it. Any other one is returned as it is. */
export function located(error: unknown, locationOf: Loaded['locationOf']): unknown {
  const location = error instanceof SetupError && error.key !== undefined ? locationOf(error.key) : undefined
  if (!(error instanceof SetupError) || location === undefined) return error
  const { problems, exitCode } = error
  return new SetupError(
    problems.map((problem) => `${location}: ${problem}`),
    { exitCode, cause: error },
  )
}
