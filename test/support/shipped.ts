import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { nodeFlags, type Places, unitEnvironment } from '../../deploy/build/node-flags.ts'
import { BUNDLE_VARIABLE } from './bundle.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** A folder with the bundle in `dist/`, as it is installed. All tests share it, so none may change it. */
export function installedBundle(): string {
  return process.env[BUNDLE_VARIABLE] ?? expect.fail('Vitest makes the bundle before the tests')
}

/** How the executable starts under the unit, for Node and the bundle: the flags, then the program. */
export function shippedArguments(places: Places, file = 'postern.service'): string[] {
  const { NODE_OPTIONS = '' } = shippedEnvironment(file)
  const program = join(installedBundle(), 'dist')
  // The executable contains the program. Node alone reads it from files.
  const flags = [...nodeFlags(places), `--allow-fs-read=${program}`, ...NODE_OPTIONS.split(' ')]
  return [...flags, join(program, 'postern.mjs')]
}

/** The environment variables that the unit or a drop-in sets. */
export function shippedEnvironment(file = 'postern.service'): Record<string, string> {
  return unitEnvironment(readFileSync(join(ROOT, 'deploy', file), 'utf8'))
}
