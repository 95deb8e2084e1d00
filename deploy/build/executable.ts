import { execFile } from 'node:child_process'
import { chmod, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { NODE_FLAGS } from './node-flags.ts'
import { stripElf } from './strip-elf.ts'

const run = promisify(execFile)

/** The processors for which there is an executable, by Node's names. */
export const PROCESSORS = ['x64', 'arm64'] as const

export type Processor = (typeof PROCESSORS)[number]

/** Milliseconds. A runtime is 57 MB. */
const NPM_TIMEOUT = 600_000

/** `package.json` and `package-lock.json` of the runtimes. The lock pins their content. */
const RUNTIMES = fileURLToPath(new URL('runtimes', import.meta.url))

/**
 * Makes a program of one file for Linux: the stripped Node.js of npm's package `node-linux-*`, with the files of a bundle in it.
 * The code that V8 compiled goes with it only if this machine has the same kind of processor. Takes npm and its registry or cache.
 */
export async function makeExecutable(bundle: string, processor: Processor, file: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-executable-'))
  try {
    const runtime = join(folder, 'node')
    await writeFile(runtime, stripElf(await runtimeFor(processor, folder)), { mode: 0o755 })
    const names = (await readdir(bundle)).filter(
      (name) => name.endsWith('.cjs') || (name.endsWith('.cache') && processor === process.arch),
    )
    const settings = join(folder, 'sea.json')
    await writeFile(
      settings,
      JSON.stringify({
        // Relative, because the executable contains this path.
        main: 'postern.mjs',
        mainFormat: 'module',
        executable: runtime,
        output: file,
        disableExperimentalSEAWarning: true,
        execArgv: NODE_FLAGS,
        execArgvExtension: 'env',
        assets: Object.fromEntries(names.sort().map((name) => [name, join(bundle, name)])),
      }),
    )
    await run(process.execPath, ['--build-sea', settings], { cwd: bundle })
    await chmod(file, 0o755)
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function runtimeFor(processor: Processor, folder: string): Promise<Buffer> {
  await cp(RUNTIMES, folder, { recursive: true })
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await run('npm', ['ci', ...flags, '--os=linux', `--cpu=${processor}`], {
    cwd: folder,
    timeout: NPM_TIMEOUT,
    // With io_uring npm hung without an open connection while it unpacked a runtime.
    env: { ...process.env, UV_USE_IO_URING: '0' },
  })
  return readFile(join(folder, 'node_modules', `node-linux-${processor}`, 'bin', 'node'))
}
