import { execFile, spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, resolve } from 'node:path'
import { PATIENCE, runningTest } from './running-test.ts'

/** When a program that hangs is killed (ms): before the test that waits for it ends. */
const LONGEST = 4 * PATIENCE

/** Whether the program is on the PATH. */
export function isInstalled(tool: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => canRun(resolve(folder, tool)))
}

function canRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** A program that fails where a library is missing, and its arguments. */
export type Probe = readonly [program: string, ...args: string[]]

const libraries = new Map<Probe, boolean>()

/** Whether that library is installed. Each probe runs once: an interpreter takes a tenth of a second to start. */
export function hasLibrary(probe: Probe): boolean {
  let there = libraries.get(probe)
  if (there === undefined) {
    const [program, ...args] = probe
    there = spawnSync(program, args, { stdio: 'ignore' }).status === 0
    libraries.set(probe, there)
  }
  return there
}

/**
 * A test that runs an outside program calls this first. Without the program the test is skipped with the reason. With
 * `POSTERN_TEST_ALL=1`, as in CI, it fails instead, so that CI cannot skip it unnoticed.
 */
export function needs(tool: string): void {
  if (!isInstalled(tool)) lack(`${tool} is not installed`)
}

/** Skips the test without this program, which Debian does not have: also in CI, which installs only what Debian has. */
export function needsForeign(tool: string): void {
  if (!isInstalled(tool)) runningTest()?.skip(`${tool} is not installed`)
}

/** As `needs`, for what is no program, such as a library of Python. */
export function needsLibrary(name: string, probe: Probe): void {
  needs(probe[0])
  if (!hasLibrary(probe)) lack(`${name} is not installed`)
}

/** The same for a test that only root can run. */
export function needsRoot(): void {
  if (process.getuid?.() !== 0) lack('only root can run this test')
}

function lack(what: string): void {
  if (process.env.POSTERN_TEST_ALL === '1') throw new Error(what)
  runningTest()?.skip(what)
}

/**
 * A command prefix that makes file modes hold for a program that root starts. It drops two capabilities instead of
 * changing the user, because another user may have no access to the clone.
 */
export function underFileModes(): readonly string[] {
  if (process.getuid?.() !== 0) return []
  needs('setpriv')
  return ['setpriv', '--bounding-set=-dac_override,-dac_read_search']
}

export interface Run {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end. A nonzero exit code does not reject; it is in `code`. */
export function run(
  program: string,
  args: readonly string[],
  options: {
    readonly input?: string
    readonly env?: NodeJS.ProcessEnv
    readonly cwd?: string
    /** Milliseconds; default: nearly as long as a test may take. */
    readonly timeout?: number
  } = {},
): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      [...args],
      {
        cwd: options.cwd,
        env: options.env ?? process.env,
        timeout: options.timeout ?? LONGEST,
        maxBuffer: 64 << 20,
      },
      (error, stdout, stderr) => {
        if (error && typeof error.code !== 'number') reject(error)
        else resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr })
      },
    )
    // A program that reads no input may have ended by now.
    child.stdin?.on('error', () => {}).end(options.input ?? '')
  })
}
