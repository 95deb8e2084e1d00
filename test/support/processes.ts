import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** In the environment of a process that its test stops: `.ci/steady` neither stops nor continues it. */
export const STOPPED_BY_TEST = { STOPPED_BY_TEST: '1' }

/** What a process holds according to /proc; zeros where there is no /proc or no such process. */
interface ProcessFigures {
  /** Resident memory in bytes. */
  readonly resident: number
  /** The most resident memory since its start, in bytes. */
  readonly mostResident: number
  readonly descriptors: number
  readonly sockets: number
}

export function figuresOf(pid: number): ProcessFigures {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const bytes = (field: string): number =>
      1024 * Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0)
    const descriptors = readdirSync(`/proc/${pid}/fd`)
    const sockets = descriptors.filter((fd) => isSocket(`/proc/${pid}/fd/${fd}`)).length
    return {
      resident: bytes('VmRSS'),
      mostResident: bytes('VmHWM'),
      descriptors: descriptors.length,
      sockets,
    }
  } catch {
    return { resident: 0, mostResident: 0, descriptors: 0, sockets: 0 }
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:')
  } catch {
    return false // closed in the meantime
  }
}

/** The state of a process in its line of /proc, behind its name, as `S` while it sleeps and `T` while it is stopped; undefined if it has ended. */
export function stateOf(pid: number): string | undefined {
  return / \(.*\) (\w) /s.exec(readIfThere(`/proc/${pid}/stat`))?.[1]
}

/** The processes that a process has started with its main thread and that have not ended. */
export function childrenOf(pid: number): number[] {
  const children = readIfThere(`/proc/${pid}/task/${pid}/children`)
  return children.split(' ').filter(Boolean).map(Number)
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** Collects all garbage of this thread. What a `WeakRef` was asked for in this turn stays until the next. */
export function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error('vitest.config.ts starts the tests with --expose-gc')
  globalThis.gc()
}

/** This process stands still (ms), as on a machine that is busy or suspended. What peers send meanwhile waits in the kernel. */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
