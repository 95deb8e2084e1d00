import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { nodeFlags as permissions, unitEnvironment } from '../deploy/build/node-flags.ts'
import { outputOf, temporaryFolder } from './child.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** A build of Postern to measure. */
export interface Program {
  readonly name: string
  readonly file: string
  /** Flags for Node, for a sidecar with its configuration and state in this folder. */
  readonly flags: (folder: string) => readonly string[]
  /** The flags that change speed or memory. The bare Node servers of a comparison get them too. */
  readonly tuning: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** The source, with these flags only. */
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
const BUILD_TIMEOUT = 120_000

/** Builds the bundle that is deployed. Its flags are those of the systemd unit, then these. */
export async function shippedProgram(nodeFlags: readonly string[]): Promise<Program> {
  const program = await temporaryFolder()
  const dist = join(program, 'dist')
  await outputOf(process.execPath, [join(ROOT, 'deploy/build/bundle.ts'), dist], { timeout: BUILD_TIMEOUT })
  const unit = await readFile(join(ROOT, 'deploy/postern.service'), 'utf8')
  const { NODE_OPTIONS: heap = '', ...env } = unitEnvironment(unit)
  const flags = (folder: string): string[] => [
    `--allow-fs-read=${program}`,
    ...permissions({ configuration: folder, state: stateFolder(folder) }),
    ...heap.split(' '),
    ...nodeFlags,
  ]
  return {
    name: 'the bundle, with the flags of the unit',
    file: join(dist, 'postern.mjs'),
    flags,
    tuning: flags('').filter((flag) => !/^--(?:permission$|allow-|disable-warning)/.test(flag)),
    env,
  }
}

/** State folder of the sidecar that is configured in `folder`. */
export function stateFolder(folder: string): string {
  return join(folder, 'state')
}
