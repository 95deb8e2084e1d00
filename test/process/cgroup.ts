import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { closeLater } from '../support/cleanup.ts'

/** A cgroup that bounds the memory of the programs in it. */
interface MemoryCgroup {
  /** The first words of a command line: the command behind them runs in the cgroup. */
  readonly prefix: readonly string[]
  /** How often the kernel has killed a process in it for its memory. */
  kills(): number
}

const ROOT = '/sys/fs/cgroup'

/** Makes a cgroup with so much memory (bytes), which is removed with the test. Undefined without root or a controller. */
export function memoryCgroup(bytes: number): MemoryCgroup | undefined {
  try {
    return makeCgroup(bytes)
  } catch {
    return undefined
  }
}

function makeCgroup(bytes: number): MemoryCgroup {
  const lines = readFileSync('/proc/self/cgroup', 'utf8')
  const [, own] = /^\d+:(?:[^:]+,)?memory(?:,[^:]+)?:(.*)$/m.exec(lines) ?? []
  // In version 2 a cgroup with processes, such as that of the tests, has none below it.
  const parent = own === undefined ? ROOT : join(ROOT, 'memory', own)
  const folder = join(parent, `postern-test-${process.pid}-${Math.random().toString(16).slice(2, 8)}`)
  mkdirSync(folder)
  try {
    writeFileSync(join(folder, own === undefined ? 'memory.max' : 'memory.limit_in_bytes'), String(bytes))
  } catch (error) {
    rmdirSync(folder)
    throw error
  }
  closeLater(() => rmdirSync(folder))
  const events = join(folder, own === undefined ? 'memory.events' : 'memory.oom_control')
  return {
    prefix: ['/bin/sh', '-c', `echo $$ > ${folder}/cgroup.procs && exec "$@"`, 'sh'],
    kills: () => Number(/^oom_kill (\d+)$/m.exec(readFileSync(events, 'utf8'))?.[1] ?? 0),
  }
}
