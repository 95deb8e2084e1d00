import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { unitArguments, unitEnvironment } from '../deploy/node-arguments.ts'
import { outputOf, temporaryFolder } from './child.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** What is started as Postern. */
export interface Program {
  readonly name: string
  readonly file: string
  /** Flags of Node's, for a sidecar whose configuration and state are in this folder. */
  readonly flags: (folder: string) => readonly string[]
  /** Those among them that change how fast or how large a process is: bare servers beside it get them as well. */
  readonly tuning: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** The source as it stands, without any flags but these. */
export function sourceProgram(nodeFlags: readonly string[] = []): Program {
  return {
    name: 'src/main.ts',
    file: join(ROOT, 'src/main.ts'),
    flags: () => nodeFlags,
    tuning: nodeFlags,
    env: { NODE_ENV: 'production' },
  }
}

/** Milliseconds. */
const LONGEST_BUILD = 120_000

/** What is deployed: the bundle, made anew in a folder of its own, with the flags of the systemd unit and these. */
export async function shippedProgram(nodeFlags: readonly string[]): Promise<Program> {
  const program = await temporaryFolder()
  const dist = join(program, 'dist')
  await outputOf(process.execPath, [join(ROOT, 'deploy/bundle.ts'), dist], { longest: LONGEST_BUILD })
  const unit = await readFile(join(ROOT, 'deploy/postern.service'), 'utf8')
  const flags = (folder: string): string[] => [
    ...unitArguments(unit, { program, configuration: folder, state: stateFolder(folder) }).slice(0, -1),
    ...nodeFlags,
  ]
  return {
    name: 'the bundle, with the flags of the unit',
    file: join(dist, 'postern.mjs'),
    flags,
    tuning: flags('').filter((flag) => !/^--(?:permission$|allow-|disable-warning)/.test(flag)),
    env: unitEnvironment(unit),
  }
}

/** Of the sidecar with this folder. */
export function stateFolder(folder: string): string {
  return join(folder, 'state')
}
