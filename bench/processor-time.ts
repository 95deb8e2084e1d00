import { readFile } from 'node:fs/promises'

/** Linux counts in hundredths of a second (USER_HZ). */
const TICK = 10

/** Processor time (ms) that a process has used so far with all its threads; undefined where Linux's /proc is not. */
export async function processorTime(pid: number): Promise<number | undefined> {
  let stat: string
  try {
    stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
  // The name in parentheses may hold spaces; `utime` and `stime` are the 12th and 13th fields behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK
}
