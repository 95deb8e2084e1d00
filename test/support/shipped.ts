import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { imageArguments, type Places, unitArguments, unitEnvironment } from '../../deploy/node-arguments.ts'
import { temporaryDirectory } from './certificate.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** The program as it is installed: `dist/` in a folder of its own. */
export function installBundle(): string {
  const folder = temporaryDirectory()
  execFileSync(process.execPath, [join(ROOT, 'deploy/bundle.ts'), join(folder, 'dist')])
  return folder
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
