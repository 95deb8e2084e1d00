import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { unitEnvironment } from '../../bench/unit-environment.ts'
import { NODE_FLAGS } from '../../deploy/build/node-flags.ts'
import { BUNDLE_VARIABLE } from '../support/made-once.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** A folder with the bundle in `dist/`, as it is installed. All tests share it, so none may change it. */
export function installedBundle(): string {
  return process.env[BUNDLE_VARIABLE] ?? expect.fail('Vitest makes the bundle before the tests')
}

/** The folders to use in place of `/etc/postern` and `/var/lib/postern`. */
interface Places {
  readonly configuration: string
  readonly state: string
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

/** The flags of the executable, with other folders, for programs that Node starts as a test or a measurement. */
function nodeFlags({ configuration, state }: Places): string[] {
  return NODE_FLAGS.map((flag) =>
    flag.replace('/etc/postern', configuration).replace('/var/lib/postern', state),
  )
}
