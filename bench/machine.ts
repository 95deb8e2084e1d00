import { readFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
import process from 'node:process'
import { outputOf } from './child.ts'
import type { Machine } from './figure.ts'

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

/** Whether processes can be pinned: `taskset` is installed, and there are at least two cores. */
export async function canPin(): Promise<boolean> {
  if (availableParallelism() < 2) return false
  return outputOf('taskset', ['-c', '0,1', 'true']).then(
    () => true,
    () => false,
  )
}

/** The version of an npm package; undefined if it is not installed. */
export async function packageVersion(name: string): Promise<string | undefined> {
  const manifest = new URL(`../node_modules/${name}/package.json`, import.meta.url)
  try {
    return (JSON.parse(await readFile(manifest, 'utf8')) as { version: string }).version // npm packages have a version
  } catch {
    return undefined
  }
}
