import { execFile } from 'node:child_process'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What a release is made from. */
export interface Source {
  /** The commit of the checkout. */
  readonly commit: string
  /** Whether tracked files differ from the commit. */
  readonly changed: boolean
  /** What `SOURCE_DATE_EPOCH` says, else the time of the commit (s since 1970). */
  readonly time: number
}

async function git(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('git', args, { cwd: ROOT })
  return stdout.trim()
}

/** Reads commit and time from git. */
export async function readSource(): Promise<Source> {
  const [commit, changes, time] = await Promise.all([
    git('rev-parse', 'HEAD'),
    git('status', '--porcelain', '--untracked-files=no'),
    git('log', '-1', '--format=%ct'),
  ])
  return { commit, changed: changes !== '', time: Number(process.env.SOURCE_DATE_EPOCH ?? time) }
}
