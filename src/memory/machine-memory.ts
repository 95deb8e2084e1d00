import { readFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'

/** One bound on the memory of this process. */
export interface MemoryBound {
  readonly bytes: number
  /** `the machine`, `V8's heap`, or `the cgroup` and its folder. */
  readonly by: string
}

/** The least first. */
export type MemoryBounds = readonly [MemoryBound, ...MemoryBound[]]

/** Reads a file; undefined if it does not exist or cannot be read. */
type ReadFile = (path: string) => string | undefined

const ROOT = '/sys/fs/cgroup'

interface Cgroup {
  /** Its folder below the mount point. */
  readonly path: string
  readonly limit: string
  readonly usage: string
  /** The fields of `memory.stat` that count cached files. The kernel drops cached files when memory is short. */
  readonly files: RegExp
}

const readText: ReadFile = (path) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/**
 * The cgroups that may limit the memory of this process: its own and all ancestors. In a container `/proc/self/cgroup` may show the path on
 * the host, so a folder need not exist here.
 */
function cgroupsOf(read: ReadFile): readonly Cgroup[] {
  const lines = (read('/proc/self/cgroup') ?? '').trim().split('\n')
  return lines.flatMap((line) => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
    const isFirst = controllers.split(',').includes('memory')
    if (!isFirst && controllers !== '') return []
    const mount = isFirst ? `${ROOT}/memory` : ROOT
    return foldersUp(path).map((folder) => {
      const whole = `${mount}${folder}`
      return isFirst
        ? {
            path: whole,
            limit: `${whole}/memory.limit_in_bytes`,
            usage: `${whole}/memory.usage_in_bytes`,
            files: /^total_(?:in)?active_file (\d+)$/gm,
          }
        : {
            path: whole,
            limit: `${whole}/memory.max`,
            usage: `${whole}/memory.current`,
            files: /^(?:in)?active_file (\d+)$/gm,
          }
    })
  })
}

/** A path and its ancestors: for `/a/b` they are `/a/b`, `/a` and the empty path of the root. */
function foldersUp(path: string): readonly string[] {
  const parts = path.split('/').filter((part) => part !== '')
  return parts.map((_, at) => `/${parts.slice(0, parts.length - at).join('/')}`).concat('')
}

/** The number of bytes in a cgroup file; undefined without a limit, which is `max` in version 2 and almost 2^63 in version 1. */
function bytesIn(text: string | undefined): number | undefined {
  const bytes = Number(text?.trim() || Number.NaN)
  return Number.isFinite(bytes) && bytes < 2 ** 60 ? bytes : undefined
}

/** All bounds on the memory of this process, the least first. */
export function memoryBounds({
  read = readText,
  total = totalmem(),
  heap = getHeapStatistics().heap_size_limit,
}: {
  readonly read?: ReadFile
  readonly total?: number
  readonly heap?: number
} = {}): MemoryBounds {
  const cgroups = cgroupsOf(read).flatMap(({ path, limit }): MemoryBound[] => {
    const bytes = bytesIn(read(limit))
    return bytes === undefined ? [] : [{ bytes, by: `the cgroup ${path}` }]
  })
  const all: MemoryBound[] = [
    ...cgroups,
    { bytes: total, by: 'the machine' },
    { bytes: heap, by: "V8's heap" },
  ]
  const [least = { bytes: total, by: 'the machine' }, ...others] = all.sort((a, b) => a.bytes - b.bytes)
  return [least, ...others]
}

/** The resident anonymous memory of this process (bytes), without pages of files. 0 if it cannot be read. */
function privateMemory(read: ReadFile = readText): number {
  const [, resident] = /^RssAnon:\s+(\d+) kB$/m.exec(read('/proc/self/status') ?? '') ?? []
  return Number(resident ?? 0) * 1024
}

/**
 * The fullness of the fullest memory bound; 1 is full. For the process it is the anonymous memory divided by `most` (bytes). For a cgroup
 * with a limit it is the usage without cached files divided by the limit. 0 if nothing can be read.
 */
export function memoryInUse(most: number, read: ReadFile = readText): number {
  const own = privateMemory(read) / most
  const shares = cgroupsOf(read).map(({ limit, usage, path, files }) => {
    const bound = bytesIn(read(limit))
    const used = bytesIn(read(usage))
    if (bound === undefined || used === undefined) return 0
    const stat = read(`${path}/memory.stat`) ?? ''
    const cached = stat.matchAll(files).reduce((sum, [, bytes]) => sum + Number(bytes), 0)
    return Math.max(0, used - cached) / bound
  })
  return Math.max(own, ...shares)
}
