import { SetupError } from '../system/setup-error.ts'
import type { ConfigFile } from './config-file.ts'
import { conflictsIn } from './conflicts.ts'
import { decode } from './decode.ts'
import { type Environment, readEnvironment, stateDirectory } from './environment.ts'
import { readFlags } from './flags.ts'
import { layer } from './layers.ts'
import { problemsOf } from './problem.ts'
import type { Config } from './schema.ts'
import { schema } from './schema.ts'
import { parseYaml } from './yaml.ts'
import { isMapping, type Parsed, type YamlMapping } from './yaml-value.ts'

/** Where configuration comes from, the weaker before the stronger; defaults are weaker than all of it. */
export interface Sources {
  readonly file?: ConfigFile
  readonly env: Environment
  /** The values of `--set`, each `key=value`. */
  readonly sets: readonly string[]
}

/** The configuration, complete and consistent; or a `SetupError` with everything that is wrong. Reads no files. */
export function loadConfig({ file, env, sets }: Sources): Config {
  const environment = readEnvironment(env)
  const flags = readFlags(sets)
  const problems = [...environment.problems, ...flags.problems]
  const read = readFile(file)
  // Without the file nearly every key would seem to be missing, which helps nobody.
  if ('problem' in read) throw new SetupError([read.problem, ...problems])

  const layered = layer(read.value, [
    ...(Object.hasOwn(read.value, 'state_dir') ? [] : stateDirectory(env)),
    ...environment.settings,
    ...flags.settings,
  ])
  const decoded = decode(schema, layered.tree)
  const issues = 'issues' in decoded ? decoded.issues : conflictsIn(decoded.value)
  problems.unshift(...problemsOf(issues, layered, file?.path))
  if (problems.length > 0 || 'issues' in decoded) throw new SetupError(problems)
  return decoded.value
}

function readFile(file: ConfigFile | undefined): Parsed<YamlMapping> {
  if (file === undefined) return { value: {} }
  const parsed = parseYaml(file.text)
  if ('problem' in parsed) return { problem: `${file.path}: ${parsed.problem}` }
  // A file of nothing but comments.
  if (parsed.value === null) return { value: {} }
  if (isMapping(parsed.value)) return { value: parsed.value }
  return {
    problem: `${file.path}: must be a mapping of keys, such as "upstream: {url: http://127.0.0.1:8080}"`,
  }
}
