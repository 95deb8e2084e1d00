import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
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
}

/** The source as it stands, without any flags but these. */
export function sourceProgram(nodeFlags: readonly string[] = []): Program {
  return {
    name: 'src/main.ts',
    file: join(ROOT, 'src/main.ts'),
    flags: () => nodeFlags,
    tuning: nodeFlags,
  }
}

/** Milliseconds. */
const LONGEST_BUILD = 120_000

/** What is deployed: the bundle, made anew in a folder of its own, with the flags of the systemd unit and these. */
export async function shippedProgram(nodeFlags: readonly string[]): Promise<Program> {
  const dist = join(await temporaryFolder(), 'dist')
  await outputOf(process.execPath, [join(ROOT, 'deploy/bundle.ts'), dist], { longest: LONGEST_BUILD })
  const unit = unitFlags(await readFile(join(ROOT, 'deploy/postern.service'), 'utf8'))
  return {
    name: 'the bundle, with the flags of the unit',
    file: join(dist, 'postern.mjs'),
    flags: (folder) => [...unit.map((flag) => atHome(flag, dist, folder)), ...nodeFlags],
    tuning: [...unit.filter((flag) => !/^--(?:permission$|allow-|disable-warning)/.test(flag)), ...nodeFlags],
  }
}

/** What the unit has between `node` and the program. */
export function unitFlags(unit: string): readonly string[] {
  const command = /^ExecStart=((?:.*\\\n)*.*)$/m.exec(unit)?.[1]?.replaceAll('\\\n', ' ').split(/\s+/) ?? []
  const from = command.indexOf('node') + 1
  const to = command.findIndex((word) => word.endsWith('/postern.mjs'))
  if (from === 0 || to < from) throw new Error('deploy/postern.service starts something else')
  return command.slice(from, to)
}

/** The places of an installation, where ours are. */
function atHome(flag: string, dist: string, folder: string): string {
  return flag
    .replace('/opt/postern', dist)
    .replace('/etc/postern', folder)
    .replace('/var/lib/postern', stateFolder(folder))
}

/** Of the sidecar with this folder. */
export function stateFolder(folder: string): string {
  return join(folder, 'state')
}
