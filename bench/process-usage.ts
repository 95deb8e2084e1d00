import { readdirSync, readFileSync } from 'node:fs'

// From the /proc of Linux. What it does not tell is NaN, which no median counts and every table shows as `-`.

/** Processor time that the threads of a process have used (ms), by the nanoseconds of the scheduler. */
export function processorTime(pid: number): number {
  return sumOfThreads(pid, 'schedstat', /^(\d+)/) / 1e6
}

/** How often the threads of a process began to wait and were woken. */
export function wakeUpsOf(pid: number): number {
  return sumOfThreads(pid, 'status', /^voluntary_ctxt_switches:\s+(\d+)/m)
}

/** Resident memory of a process (MiB). */
export function residentMemory(pid: number): number {
  return numberIn(`/proc/${pid}/status`, /^VmRSS:\s+(\d+) kB$/m) / 1024
}

/** Anonymous memory of a process (MiB): what no file of the disk can give back. */
export function privateMemory(pid: number): number {
  return numberIn(`/proc/${pid}/status`, /^RssAnon:\s+(\d+) kB$/m) / 1024
}

function sumOfThreads(pid: number, file: string, number: RegExp): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`)
    return threads.reduce((sum, id) => sum + numberIn(`/proc/${pid}/task/${id}/${file}`, number), 0)
  } catch {
    return Number.NaN
  }
}

function numberIn(file: string, number: RegExp): number {
  try {
    return Number(number.exec(readFileSync(file, 'utf8'))?.[1])
  } catch {
    return Number.NaN
  }
}

/** Runs something and tells the fraction of a core that a process used meanwhile. */
export async function whileBusy<Result>(
  pid: number,
  run: () => Promise<Result>,
): Promise<readonly [result: Result, busy: number]> {
  const [begin, used] = [performance.now(), processorTime(pid)]
  const result = await run()
  return [result, (processorTime(pid) - used) / (performance.now() - begin)]
}

/** Milliseconds. */
const INTERVAL = 100

/** Samples the resident memory of a process. The function ends that, and tells the highest (MiB). */
export function watchMemory(pid: number): () => number {
  let peak = residentMemory(pid)
  const sample = (): number => {
    peak = Math.max(peak, residentMemory(pid))
    return peak
  }
  const timer = setInterval(sample, INTERVAL)
  return () => {
    clearInterval(timer)
    return sample()
  }
}
