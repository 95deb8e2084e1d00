import { readFile } from 'node:fs/promises'

/** Resident memory of a process (bytes); undefined where Linux's /proc is not. */
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
  /** Seconds since the start, and MiB. */
  readonly points: readonly (readonly [seconds: number, mebibytes: number])[]
  /** The most that was seen (bytes). */
  readonly peak: number | undefined
}

/** Milliseconds. */
const INTERVAL = 100

/** Watches the memory of a process from now on, until it is stopped. */
export function watchMemory(pid: number): { stop(): Promise<MemoryRecord> } {
  const start = performance.now()
  const points: (readonly [number, number])[] = []
  let peak: number | undefined
  const look = async (): Promise<void> => {
    const bytes = await residentMemory(pid)
    if (bytes === undefined) return
    points.push([(performance.now() - start) / 1000, bytes / MEBIBYTE])
    peak = Math.max(peak ?? 0, bytes)
  }
  const timer = setInterval(look, INTERVAL)
  return {
    async stop() {
      clearInterval(timer)
      await look()
      return { points: thinned(points), peak }
    },
  }
}

export const MEBIBYTE: number = 2 ** 20

/** As many as a chart can show. */
const MOST_POINTS = 300

function thinned<Point>(points: readonly Point[]): Point[] {
  const step = Math.ceil(points.length / MOST_POINTS)
  return points.filter((_, i) => i % step === 0 || i === points.length - 1)
}
