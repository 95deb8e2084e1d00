import { readFile } from 'node:fs/promises'

/** Milliseconds. Linux counts processor time in hundredths of a second (USER_HZ). */
const TICK = 10

/** Processor time that all threads of a process have used (ms); undefined without the /proc of Linux. */
export async function processorTime(pid: number): Promise<number | undefined> {
  let stat: string
  try {
    stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The name in parentheses may contain spaces; `utime` and `stime` are the 12th and 13th fields after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK
}

/** Resident memory of a process (bytes); undefined without the /proc of Linux. */
export async function residentMemory(pid: number): Promise<number | undefined> {
  let status: string
  try {
    status = await readFile(`/proc/${pid}/status`, 'utf8')
  } catch {
    return undefined
  }
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
}

export interface MemoryRecord {
  /** Time since the start of the record, and resident memory. */
  readonly points: readonly (readonly [seconds: number, mebibytes: number])[]
  /** Highest sample (bytes). */
  readonly peak: number | undefined
}

/** Milliseconds. */
const INTERVAL = 100

/** Samples the resident memory of a process until `stop`. */
export function watchMemory(pid: number): { stop(): Promise<MemoryRecord> } {
  const start = performance.now()
  const points: (readonly [number, number])[] = []
  let peak: number | undefined
  const sample = async (): Promise<void> => {
    const bytes = await residentMemory(pid)
    if (bytes === undefined) return
    points.push([(performance.now() - start) / 1000, bytes / MEBIBYTE])
    peak = Math.max(peak ?? 0, bytes)
  }
  const timer = setInterval(sample, INTERVAL)
  return {
    async stop() {
      clearInterval(timer)
      await sample()
      return { points: thinned(points), peak }
    },
  }
}

export const MEBIBYTE: number = 2 ** 20

/** More points than a chart can show. */
const MAX_POINTS = 300

function thinned<Point>(points: readonly Point[]): Point[] {
  const step = Math.ceil(points.length / MAX_POINTS)
  return points.filter((_, i) => i % step === 0 || i === points.length - 1)
}
