import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { makeExecutable } from '../deploy/build/executable.ts'
import { temporaryFolder } from './child.ts'
import { unitEnvironment } from './unit-environment.ts'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

/** A build of Postern to measure. */
export interface Program {
  readonly name: string
  /** The program and its first arguments. */
  readonly command: readonly string[]
  /** The environment. The bare Node servers of a comparison get it too. */
  readonly env: Readonly<Record<string, string>>
  /** `NODE_OPTIONS` of a sidecar with its configuration and state in this folder. */
  readonly nodeOptions: (folder: string) => string
  /** The flags of Node that change speed or memory. The bare Node servers of a comparison get them too. */
  readonly tuning: readonly string[]
}

/** The source, with these flags only. */
export function sourceProgram(nodeFlags: readonly string[] = []): Program {
  return {
    name: 'src/main.ts',
    command: [process.execPath, ...nodeFlags, join(ROOT, 'src/main.ts')],
    env: { NODE_ENV: 'production' },
    nodeOptions: () => '',
    tuning: nodeFlags,
  }
}

/**
 * The executable that is released: `made`, or else a new one. Its environment is that of the systemd unit; `NODE_OPTIONS` has these flags,
 * too.
 */
export async function shippedProgram(nodeFlags: readonly string[], made?: string): Promise<Program> {
  const file = made ?? join(await temporaryFolder(), 'postern')
  if (made === undefined) await makeExecutable(process.arch === 'arm64' ? 'arm64' : 'x64', file)
  const unit = await readFile(join(ROOT, 'deploy/postern.service'), 'utf8')
  const { NODE_OPTIONS: heap = '', ...env } = unitEnvironment(unit)
  const tuning = [...heap.split(' '), ...nodeFlags]
  return {
    name: 'the executable, with the environment of the unit',
    command: [file],
    env,
    // With the permissions for the folders of an installation it need not restart to get them.
    nodeOptions: (place) =>
      [...tuning, `--allow-fs-read=${place}`, `--allow-fs-write=${stateFolder(place)}`].join(' '),
    tuning,
  }
}

/** State folder of the sidecar that is configured in `folder`. */
export function stateFolder(folder: string): string {
  return join(folder, 'state')
}
