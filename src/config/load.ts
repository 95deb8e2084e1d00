import { isUtf8 } from 'node:buffer'
import { closeSync, openSync, readSync } from 'node:fs'
import { explainPathError, LARGEST_FILE } from '../system/named-file.ts'
import { codeOf, SetupError } from '../system/setup-error.ts'
import { conflictsIn, passwordChoice } from './conflicts.ts'
import { decode } from './decode.ts'
import { type Environment, readEnvironment, readFlags, stateDirectory } from './key-overrides.ts'
import { layer } from './layers.ts'
import { locationOf, problemsOf } from './problem.ts'
import { type Config, schema } from './schema.ts'
import { FaultyConfiguration, whereaboutsIn } from './whereabouts.ts'
import {
  isMapping,
  narrow,
  type Parsed,
  parseYamlDocument,
  type YamlDocument,
  type YamlMapping,
  type YamlValue,
} from './yaml.ts'

export interface ConfigFile {
  readonly path: string
  readonly text: string
}

/** Where the configuration comes from, in ascending order of precedence; defaults come before all of them. */
interface Sources {
  readonly file?: ConfigFile
  /** In place of the file: its values as an object. */
  readonly object?: unknown
  readonly env?: Environment
  readonly sets?: readonly string[]
  /** The program that embeds Postern checks passwords, so the configuration names no source. */
  readonly hasFunctions?: boolean
}

/** A complete configuration, and where its values come from. */
export interface Loaded {
  readonly config: Config
  /** The keys that are set, in the form of the file. */
  readonly tree: YamlValue
  /** `postern.yaml:7`, a variable or `--set`; undefined for a default. `key` is in dotted form. */
  readonly locationOf: (key: string) => string | undefined
}

/**
 * The complete configuration, with every default filled in and checked for conflicts. Throws a `SetupError` that lists
 * all problems at once. Reads no files.
 */
export function loadConfig(sources: Sources): Config {
  return loadWithLocations(sources).config
}

/** As `loadConfig`, and tells where each value is set. */
export function loadWithLocations({
  file,
  object,
  env = {},
  sets = [],
  hasFunctions = false,
}: Sources): Loaded {
  const environment = readEnvironment(env)
  const flags = readFlags(sets)
  const problems = [...environment.problems, ...flags.problems]
  const parsed = object === undefined ? parseFile(file) : parseObject(object)
  // The check stops here: without the file, nearly every required key would be reported as missing.
  if ('problem' in parsed) throw new SetupError([parsed.problem, ...problems])

  const { tree, lineOf } = parsed.value
  const layered = layer(tree, [
    ...(Object.hasOwn(tree, 'state_dir') ? [] : stateDirectory(env)),
    ...environment.overrides,
    ...flags.overrides,
  ])
  const decoded = decode(schema, layered.tree)
  const issues = [
    ...('issues' in decoded ? decoded.issues : conflictsIn(decoded.value, hasFunctions)),
    ...passwordChoice(layered.tree, hasFunctions),
  ]
  const positions = file && { path: file.path, lineOf }
  problems.unshift(...problemsOf(issues, layered, positions))
  if (problems.length > 0 || 'issues' in decoded) {
    const outside = environment.problems.length + flags.problems.length > 0
    throw new FaultyConfiguration(problems, outside ? undefined : whereaboutsIn(layered.tree, issues))
  }
  return {
    config: decoded.value,
    tree: layered.tree,
    locationOf: (key) => locationOf(key.split('.'), layered, positions),
  }
}

interface TopLevel extends Pick<YamlDocument, 'lineOf'> {
  readonly tree: YamlMapping
}

const noLine = (): undefined => undefined

function parseFile(file: ConfigFile | undefined): Parsed<TopLevel> {
  if (file === undefined) return { value: { tree: {}, lineOf: noLine } }
  const parsed = parseYamlDocument(file.text)
  if ('problem' in parsed) {
    const line = parsed.line === undefined ? '' : `:${parsed.line}`
    return { problem: `${file.path}${line}: ${parsed.problem}` }
  }
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
  return { problem: `${source}: must be a mapping of keys, such as "upstream: {url: http://127.0.0.1:8080}"` }
}

export function readConfigFile(path: string): ConfigFile {
  const bytes = readBytes(path)
  if (bytes.length > LARGEST_FILE)
    throw new SetupError(`${path}: is larger than 1 MiB; name a configuration file`)
  if (!isUtf8(bytes)) throw new SetupError(`${path}: is not UTF-8 text; save it as UTF-8`)
  return { path, text: new TextDecoder().decode(bytes) }
}

/** Reads at most one byte more than allowed, because the length of a pipe or of /dev/zero is unknown. */
function readBytes(path: string): Buffer {
  try {
    return readAtMost(path, LARGEST_FILE + 1)
  } catch (error) {
    if (codeOf(error) === '') throw error
    const { reason, remedy } = explainPathError(error, path)
    throw new SetupError(`${path}: ${reason}`, {
      remedy: codeOf(error) === 'ENOENT' ? 'name the configuration with --config' : remedy,
      cause: error,
    })
  }
}

function readAtMost(path: string, most: number): Buffer {
  const buffer = Buffer.alloc(most)
  const descriptor = openSync(path, 'r')
  try {
    let length = 0
    for (;;) {
      const read = readSync(descriptor, buffer, length, most - length, null)
      length += read
      if (read === 0 || length === most) return buffer.subarray(0, length)
    }
  } finally {
    closeSync(descriptor)
  }
}
