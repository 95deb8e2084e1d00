import { effectiveTree } from '../../src/config/effective.ts'
import { loadWithLocations } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { writeYaml, type YamlValue } from '../../src/config/yaml.ts'
import { SetupError } from '../../src/system/setup-error.ts'

/** The smallest valid configuration. */
export const MINIMAL = 'upstream: {url: "http://127.0.0.1:8080"}\npassword: {file: /etc/postern/password}\n'

interface Given {
  readonly file?: string
  readonly env?: Readonly<Record<string, string>>
  readonly sets?: readonly string[]
}

/** Loads a configuration; by default the minimal one. */
export function load(given: Given = {}): Config {
  return loaded(given).config
}

/** What a configuration sets, in the form of the file. */
export function treeOf(given: Given): YamlValue {
  return loaded(given).tree
}

/** The effective configuration, as `check` prints it. */
export function effectiveYaml(given: Given = {}): string {
  return writeYaml(effectiveTree(treeOf(given)))
}

function loaded({ file = MINIMAL, env = {}, sets = [] }: Given) {
  return loadWithLocations({ file: { path: 'postern.yaml', text: file }, env, sets })
}

/** The problems of a configuration, a line each; empty when it is valid. */
export function problemsIn(given: Given): readonly string[] {
  try {
    load(given)
    return []
  } catch (error) {
    if (error instanceof SetupError) return error.problems
    throw error
  }
}

/** The problems of the minimal configuration with another line of YAML. */
export function problemsWith(line: string): readonly string[] {
  return problemsIn({ file: `${MINIMAL}${line}\n` })
}

/** The text that a case shows: `<U+00A0>` and the like stand for one character each. */
export function textOf(shown: string): string {
  return shown.replaceAll(/<U\+([0-9A-F]{4})>/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
}
