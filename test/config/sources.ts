import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import { SetupError } from '../../src/system/setup-error.ts'

/** The smallest valid configuration. */
export const MINIMAL = 'upstream: {url: "http://127.0.0.1:8080"}\npassword: {file: /etc/postern/password}\n'

interface Given {
  readonly file?: string
  readonly env?: Readonly<Record<string, string>>
  readonly sets?: readonly string[]
}

/** Loads a configuration; by default the minimal one. */
export function load({ file = MINIMAL, env = {}, sets = [] }: Given = {}): Config {
  return loadConfig({ file: { path: 'postern.yaml', text: file }, env, sets })
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
