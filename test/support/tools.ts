import { execFile, spawnSync } from 'node:child_process'
import { TestRunner } from 'vitest'

const found = new Map<string, boolean>()

/** Whether the PATH leads to the program. */
export function isInstalled(tool: string): boolean {
  let there = found.get(tool)
  if (there === undefined) {
    there = spawnSync('sh', ['-c', 'command -v "$1"', 'sh', tool], { stdio: 'ignore' }).status === 0
    found.set(tool, there)
  }
  return there
}

/**
 * Call first in a test that runs an outside program. Without it the test is skipped and says so; with
 * `POSTERN_TEST_ALL=1`, as in CI, it fails, so that nothing is skipped there unseen.
 */
export function needs(tool: string): void {
  if (isInstalled(tool)) return
  if (process.env.POSTERN_TEST_ALL === '1') throw new Error(`${tool} is not installed`)
  TestRunner.getCurrentTest()?.context.skip(`${tool} is not installed`)
}

/**
 * What to put in front of a program, so that the modes of files hold for it: to root nothing is forbidden. Takes two
 * capabilities away instead of changing the user, who might not be allowed into the clone.
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

/** Runs a program to its end. Never rejects because of the exit code; read `code`. */
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
    // A program that wants no input may have ended by now.
    child.stdin?.on('error', () => {}).end(options.input ?? '')
  })
}
