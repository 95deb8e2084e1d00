import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
import process from 'node:process'
import { outputOf } from './child.ts'

/** Where and on what figures were taken. */
export interface Machine {
  readonly processor: string
  readonly cores: number
  readonly memory: string
  readonly kernel: string
  readonly node: string
  /** Of this repository, with `-dirty` where files differ from it. */
  readonly commit: string
  readonly loadAverage: number
}

export async function describeMachine(): Promise<Machine> {
  return {
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memory: `${(totalmem() / 2 ** 30).toFixed(0)} GiB`,
    kernel: `${type()} ${release()}`,
    node: process.versions.node,
    commit: (await outputOf('git', ['describe', '--always', '--dirty']).catch(() => 'unknown')).trim(),
    loadAverage: currentLoad(),
  }
}

/** The load average of the last minute. */
export function currentLoad(): number {
  return Math.round((loadavg()[0] ?? 0) * 10) / 10
}

/** Whether processes can be pinned here: `taskset`, and two cores to tell apart. */
export async function canPin(): Promise<boolean> {
  if (availableParallelism() < 2) return false
  return outputOf('taskset', ['-c', '0,1', 'true']).then(
    () => true,
    () => false,
  )
}
