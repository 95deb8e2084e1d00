import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { makeProgram } from './bundle.ts'
import { NODE_FLAGS } from './node-flags.ts'
import { lockedRuntime } from './runtimes.ts'
import { stripProgram } from './strip.ts'

const run = promisify(execFile)

/** The processors for which there is an executable, by Node's names. */
export const PROCESSORS = ['x64', 'arm64'] as const

export type Processor = (typeof PROCESSORS)[number]

/** What is to be said about an executable. */
export interface Executable {
  /** The licences of the packages in it. */
  readonly licences: string
  /** The name of the `strip` that is not installed: then Node.js keeps its symbols. */
  readonly missing: string | undefined
}

/** The main script, which loads the others. */
const LOADER = 'load-assets.cjs'

/** Milliseconds. A runtime is 57 MB. */
const NPM_TIMEOUT = 600_000

/**
 * Makes a program of one file for Linux: the stripped Node.js of npm's package `node-linux-*`, with the files of the program in it.
 * Takes npm and its registry or cache.
 */
export async function makeExecutable(processor: Processor, file: string): Promise<Executable> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-executable-'))
  try {
    const program = join(folder, 'program')
    const licences = await makeProgram(program)
    const files = (await readdir(program)).sort()
    await copyFile(join(import.meta.dirname, LOADER), join(program, LOADER))
    const runtime = join(folder, 'node')
    await copyFile(await runtimeFor(processor, folder), runtime)
    const missing = await stripProgram(runtime, processor)
    const settings = join(folder, 'sea.json')
    await writeFile(
      settings,
      JSON.stringify({
        // Relative, because the executable contains this path.
        main: LOADER,
        assets: Object.fromEntries(files.map((name) => [name, name])),
        executable: runtime,
        output: file,
        disableExperimentalSEAWarning: true,
        execArgv: NODE_FLAGS,
        execArgvExtension: 'env',
      }),
    )
    await run(process.execPath, ['--build-sea', settings], { cwd: program })
    await chmod(file, 0o755)
    return { licences, missing }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/**
 * The path of the Node.js of npm's package for a processor, as the lock file pins it. The lock that npm gets here has no `os` and `cpu`: an older npm
 * does not know `--cpu`, and silently skips a package for another processor.
 */
async function runtimeFor(processor: Processor, folder: string): Promise<string> {
  const name = `node-linux-${processor}`
  const path = `node_modules/${name}`
  const { version, integrity } = await lockedRuntime(name)
  const own = { dependencies: { [name]: version } }
  const lock = { lockfileVersion: 3, packages: { '': own, [path]: { version, integrity } } }
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, ...own }))
  await writeFile(join(folder, 'package-lock.json'), JSON.stringify(lock))
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'], {
    cwd: folder,
    timeout: NPM_TIMEOUT,
    // With io_uring npm hung without an open connection while it unpacked a runtime.
    env: { ...process.env, UV_USE_IO_URING: '0' },
  })
  return join(folder, path, 'bin', 'node')
}
