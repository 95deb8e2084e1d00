import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { atEnd } from './run-program.ts'

/** What the processes of a cgroup may take together. */
interface Quota {
  /** Fraction of one core. */
  readonly processor: number
  /** MiB. */
  readonly memory: number
}

/** Microseconds: the kernel's default. */
const PERIOD = 100_000

/** Enters these cgroups and becomes the command behind `--`. */
const JOIN = `
while [ "$1" != -- ]; do
  echo $$ > "$1/cgroup.procs"
  shift
done
shift
exec "$@"
`

/** The beginning of a command that starts its further arguments in the cgroups of these folders, as the same process. */
export const enterCgroups = (folders: readonly string[]): readonly string[] => [
  'sh',
  '-ec',
  JOIN,
  'sh',
  ...folders,
  '--',
]

/**
 * Makes a cgroup, which is removed when this program ends. Resolves with the beginning of a command that starts its further arguments in it,
 * as the same process; with the reason as text if it cannot be made.
 */
export async function makeCgroup({ processor, memory }: Quota): Promise<readonly string[] | string> {
  const quota = String(processor * PERIOD)
  const bytes = String(memory * 2 ** 20)
  const name = `postern-bench-${process.pid}`
  const unified = await mountOf((type) => type === 'cgroup2')
  const [cpu, ram] = await Promise.all(['cpu', 'memory'].map((controller) => mountOf(ofVersion1(controller))))
  const settings =
    cpu !== undefined && ram !== undefined
      ? [
          [cpu, { 'cpu.cfs_period_us': String(PERIOD), 'cpu.cfs_quota_us': quota }] as const,
          [ram, { 'memory.limit_in_bytes': bytes }] as const,
        ]
      : [[unified ?? '', { 'cpu.max': `${quota} ${PERIOD}`, 'memory.max': bytes }] as const]
  try {
    const folders: string[] = []
    for (const [mount, files] of settings) {
      if (mount === unified) await writeFile(join(mount, 'cgroup.subtree_control'), '+cpu +memory')
      const folder = join(mount, name)
      await mkdir(folder)
      atEnd(() => rmdir(folder))
      folders.push(folder)
      for (const [file, value] of Object.entries(files)) await writeFile(join(folder, file), value)
    }
    return enterCgroups(folders)
  } catch (error) {
    return (error as Error).message
  }
}

type IsWanted = (type: string | undefined, options: readonly string[]) => boolean

const ofVersion1 =
  (controller: string): IsWanted =>
  (type, options) =>
    type === 'cgroup' && options.includes(controller)

async function mountOf(isWanted: IsWanted): Promise<string | undefined> {
  const mounts = (await readFile('/proc/self/mounts', 'utf8')).split('\n').map((line) => line.split(' '))
  return mounts.find(([, , type, options = '']) => isWanted(type, options.split(',')))?.[1]
}
