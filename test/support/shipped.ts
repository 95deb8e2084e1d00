import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { imageArguments, type Places, unitArguments, unitEnvironment } from '../../deploy/node-arguments.ts'
import { BUNDLE_VARIABLE } from './bundle.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** The folder of the program as it is installed: `dist/` within is what the bundle is made of. For all tests, so not to be changed. */
export function installedBundle(): string {
  return process.env[BUNDLE_VARIABLE] ?? expect.fail('the bundle is made by Vitest before the tests')
}

/** The arguments of Node in the `ExecStart` of the unit or a drop-in, the program last. */
export function shippedUnitArguments(places?: Places, file = 'postern.service'): string[] {
  return unitArguments(readFileSync(join(ROOT, 'deploy', file), 'utf8'), places)
}

/** What a drop-in sets in the environment. */
export function shippedUnitEnvironment(file: string): Record<string, string> {
  return unitEnvironment(readFileSync(join(ROOT, 'deploy', file), 'utf8'))
}

/** The arguments of Node in the `ENTRYPOINT` of the image, the program last. */
export function shippedImageArguments(places?: Places): string[] {
  return imageArguments(readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8'), places)
}
