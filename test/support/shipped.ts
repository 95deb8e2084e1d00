import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from './certificate.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** Where the program, its configuration and its state are, in place of the folders that the unit names. */
export interface Places {
  readonly program: string
  readonly configuration: string
  readonly state: string
}

/** The program as it is installed: `dist/` in a folder of its own. */
export function installBundle(): string {
  const folder = temporaryDirectory()
  execFileSync(process.execPath, [join(ROOT, 'deploy/bundle.ts'), join(folder, 'dist')])
  return folder
}

/** The arguments of Node in the `ExecStart` of the unit or a drop-in, up to the program; `/usr/bin/env node` comes before. */
export function unitArguments(places?: Places, file = 'postern.service'): string[] {
  const unit = readFileSync(join(ROOT, 'deploy', file), 'utf8').replaceAll('\\\n', ' ')
  const [, line = ''] = /^ExecStart=\/usr\/bin\/env node (.*) serve --config \S+$/m.exec(unit) ?? []
  return relocated(line.split(/\s+/), places)
}

/** What a drop-in sets in the environment. */
export function unitEnvironment(file: string): Record<string, string> {
  const unit = readFileSync(join(ROOT, 'deploy', file), 'utf8')
  return Object.fromEntries(
    [...unit.matchAll(/^Environment=(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
}

/** The arguments of Node in the `ENTRYPOINT` of the image. */
export function imageArguments(places?: Places): string[] {
  const dockerfile = readFileSync(join(ROOT, 'deploy/Dockerfile'), 'utf8').replaceAll('\\\n', ' ')
  const [, list = ''] = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile) ?? []
  const [, ...args] = JSON.parse(list) as string[] // "node" comes first
  return relocated(args, places)
}

function relocated(args: readonly string[], places: Places | undefined): string[] {
  if (places === undefined) return [...args]
  return args.map((arg) =>
    arg
      .replace('/opt/postern', places.program)
      .replace('/etc/postern', places.configuration)
      .replace('/var/lib/postern', places.state),
  )
}
