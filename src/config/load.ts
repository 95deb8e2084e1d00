import { isUtf8 } from 'node:buffer'
import { closeSync, openSync, readSync } from 'node:fs'
import { isWithheld, reasonOf } from '../system/node-permission.ts'
import { codeOf, SetupError } from '../system/setup-error.ts'
import { LARGEST_FILE } from '../system/whole-file.ts'
import { conflictsIn } from './conflicts.ts'
import { decode } from './decode.ts'
import { layer } from './layers.ts'
import { type Environment, readEnvironment, readFlags, stateDirectory } from './overrides.ts'
import { problemsOf } from './problem.ts'
import { type Config, schema } from './schema.ts'
import {
  isMapping,
  narrow,
  type Parsed,
  parseYamlDocument,
  type YamlDocument,
  type YamlMapping,
} from './yaml.ts'

/** The text of a configuration file, and the path that error messages show. */
export interface ConfigFile {
  readonly path: string
  readonly text: string
}

/** Where the configuration comes from, in ascending order of precedence; defaults come before all of them. */
export interface Sources {
  readonly file?: ConfigFile
  /** In place of the file: what its YAML would say, as an object. */
  readonly object?: unknown
  readonly env: Environment
  /** The values of `--set`, each `key=value`. */
  readonly sets: readonly string[]
}

/**
 * The complete configuration, with every default filled in and checked for conflicts. Throws a `SetupError` that lists
 * all problems at once. Reads no files.
 */
export function loadConfig({ file, object, env, sets }: Sources): Config {
  const environment = readEnvironment(env)
  const flags = readFlags(sets)
  const problems = [...environment.problems, ...flags.problems]
  const parsed = object === undefined ? parseFile(file) : parseObject(object)
  // Stops here: without the file, nearly every required key would be reported as missing.
  if ('problem' in parsed) throw new SetupError([parsed.problem, ...problems])

  const { tree, lineOf } = parsed.value
  const layered = layer(tree, [
    ...(Object.hasOwn(tree, 'state_dir') ? [] : stateDirectory(env)),
    ...environment.overrides,
    ...flags.overrides,
  ])
  const decoded = decode(schema, layered.tree)
  const issues = 'issues' in decoded ? decoded.issues : conflictsIn(decoded.value)
  problems.unshift(...problemsOf(issues, layered, file && { path: file.path, lineOf }))
  if (problems.length > 0 || 'issues' in decoded) throw new SetupError(problems)
  return decoded.value
}

interface TopLevel extends Pick<YamlDocument, 'lineOf'> {
  readonly tree: YamlMapping
}

const noLine = (): undefined => undefined

function parseFile(file: ConfigFile | undefined): Parsed<TopLevel> {
  if (file === undefined) return { value: { tree: {}, lineOf: noLine } }
  const parsed = parseYamlDocument(file.text)
  if ('problem' in parsed) return { problem: `${file.path}: ${parsed.problem}` }
  return topLevel(parsed.value, file.path)
}

function parseObject(object: unknown): Parsed<TopLevel> {
  const parsed = narrow(object)
  if ('problem' in parsed) return { problem: `configuration: ${parsed.problem}` }
  return topLevel({ tree: parsed.value, lineOf: noLine }, 'configuration')
}

function topLevel({ tree, lineOf }: YamlDocument, source: string): Parsed<TopLevel> {
  // A file that holds only comments.
  if (tree === null) return { value: { tree: {}, lineOf } }
  if (isMapping(tree)) return { value: { tree, lineOf } }
  return {
    problem: `${source}: must be a mapping of keys, such as "upstream: {url: http://127.0.0.1:8080}"`,
  }
}

/** Reads a configuration file. Throws a `SetupError` with the reason if that fails. */
export function readConfigFile(path: string): ConfigFile {
  const bytes = readBytes(path)
  if (bytes.length > LARGEST_FILE)
    throw new SetupError(`${path}: is larger than 1 MiB; name a configuration file`)
  if (!isUtf8(bytes)) throw new SetupError(`${path}: is not UTF-8 text; save it as UTF-8`)
  return { path, text: new TextDecoder().decode(bytes) }
}

/** Reads at most one byte more than allowed, because a pipe or /dev/zero does not say how long it is. */
function readBytes(path: string): Buffer {
  const buffer = Buffer.alloc(LARGEST_FILE + 1)
  try {
    const descriptor = openSync(path, 'r')
    try {
      let length = 0
      for (;;) {
        const read = readSync(descriptor, buffer, length, buffer.length - length, null)
        length += read
        if (read === 0 || length === buffer.length) return buffer.subarray(0, length)
      }
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (codeOf(error) === '') throw error
    throw new SetupError(`${path}: ${explain(error)}`)
  }
}

function explain(error: unknown): string {
  if (isWithheld(error)) return reasonOf(error)
  const code = codeOf(error)
  switch (code) {
    case 'ENOENT':
      return 'there is no such file; name the configuration with --config'
    case 'ENOTDIR':
      return 'there is no such file: a part of the path is not a directory'
    case 'EACCES':
    case 'EPERM':
      return 'must be readable by the user that runs Postern'
    case 'EISDIR':
      return 'is a directory; name the file in it'
    default:
      return `cannot be read (${code})`
  }
}
