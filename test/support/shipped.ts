import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { imageArguments, type Places, unitArguments, unitEnvironment } from '../../deploy/node-arguments.ts'
import { BUNDLE_VARIABLE } from './bundle.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** A folder with the bundle in `dist/`, as it is installed. All tests share it, so none may change it. */
export function installedBundle(): string {
  return process.env[BUNDLE_VARIABLE] ?? expect.fail('Vitest makes the bundle before the tests')
}

/** The arguments of Node in the `ExecStart` of the unit or a drop-in; the last is the program. */
export function shippedUnitArguments(places?: Places, file = 'postern.service'): string[] {
  return unitArguments(readFileSync(join(ROOT, 'deploy', file), 'utf8'), places)
}

/** The environment variables that a drop-in sets. */
export function shippedUnitEnvironment(file: string): Record<string, string> {
  return unitEnvironment(readFileSync(join(ROOT, 'deploy', file), 'utf8'))
}

/** The arguments of Node in the `ENTRYPOINT` of the image; the last is the program. */
export function shippedImageArguments(places?: Places): string[] {
  return imageArguments(readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8'), places)
}
