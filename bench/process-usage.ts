import { readFile } from 'node:fs/promises'

/** Milliseconds. Linux counts processor time in hundredths of a second (USER_HZ). */
const TICK = 10

/** Processor time that all threads of a process have used (ms); undefined without the /proc of Linux. */
export async function processorTime(pid: number): Promise<number | undefined> {
  const stat = await procFile(pid, 'stat')
  if (stat === undefined) return undefined
  // The name in parentheses may contain spaces; `utime` and `stime` are the 12th and 13th fields after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK
}

/** Resident memory of a process (bytes); undefined without the /proc of Linux. */
export function residentMemory(pid: number): Promise<number | undefined> {
  return memoryOf(pid, /^VmRSS:\s+(\d+) kB$/m)
}

/** Anonymous memory of a process (bytes): what no file of the disk can give back. Undefined without the /proc of Linux. */
export function privateMemory(pid: number): Promise<number | undefined> {
  return memoryOf(pid, /^RssAnon:\s+(\d+) kB$/m)
}

async function memoryOf(pid: number, line: RegExp): Promise<number | undefined> {
  const kibibytes = line.exec((await procFile(pid, 'status')) ?? '')?.[1]
  return kibibytes === undefined ? undefined : Number(kibibytes) * 1024
}

function procFile(pid: number, name: string): Promise<string | undefined> {
  return readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => undefined)
}

/** Runs something and tells the fraction of a core that a process used meanwhile; undefined without the /proc of Linux. */
export async function whileBusy<Result>(
  pid: number,
  run: () => Promise<Result>,
): Promise<readonly [result: Result, busy: number | undefined]> {
  const [begin, used] = [performance.now(), await processorTime(pid)]
  const result = await run()
  const [time, now] = [performance.now() - begin, await processorTime(pid)]
  return [result, used === undefined || now === undefined ? undefined : (now - used) / time]
}

export interface MemoryRecord {
  /** Highest resident memory (bytes). */
  readonly peak: number | undefined
}

/** Milliseconds. */
const INTERVAL = 100

/** Samples the resident memory of a process until `stop`. */
export function watchMemory(pid: number): { stop(): Promise<MemoryRecord> } {
  let peak: number | undefined
  const sample = async (): Promise<void> => {
    const bytes = await residentMemory(pid)
    if (bytes !== undefined) peak = Math.max(peak ?? 0, bytes)
  }
  const timer = setInterval(sample, INTERVAL)
  return {
    async stop() {
      clearInterval(timer)
      await sample()
      return { peak }
    },
  }
}

export const MEBIBYTE: number = 2 ** 20

export function mebibytes(bytes: number | undefined): number | undefined {
  return bytes === undefined ? undefined : bytes / MEBIBYTE
}
