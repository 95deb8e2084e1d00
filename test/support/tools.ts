import { execFile, spawnSync } from 'node:child_process'
import { runningTest } from './running-test.ts'

const found = new Map<string, boolean>()

/** Whether the program is on the PATH. */
export function isInstalled(tool: string): boolean {
  let there = found.get(tool)
  if (there === undefined) {
    there = spawnSync('sh', ['-c', 'command -v "$1"', 'sh', tool], { stdio: 'ignore' }).status === 0
    found.set(tool, there)
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

/** The same for what is no program, such as a library of Python: `probe` is a program that fails without it, and its arguments. */
export function needsLibrary(name: string, probe: readonly [string, ...string[]]): void {
  needs(probe[0])
  const there = spawnSync(probe[0], probe.slice(1), { stdio: 'ignore' }).status === 0
  if (!there) lack(`${name} is not installed`)
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
    /** Milliseconds. */
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
        timeout: options.timeout ?? 60_000,
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
