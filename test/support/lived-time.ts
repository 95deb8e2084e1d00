import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { closeLater } from './cleanup.ts'

/** Milliseconds. A turn costs a request to each process whose time counts. */
const STEP = 20

/** What waits for a timer and then for a thread of the pool waits as long as this. */
const pool = (): Promise<unknown> => stat('/')

/**
 * A clock (ms) that counts turns, each as 20 ms: a timer of 20 ms, then a call of the kind that the tested code waits for. So it waits
 * for a processor as often as that code does, or more often: what takes a second on an idle machine takes a second of it on a busy one,
 * too. It stops with the test.
 * @param turn asks another process whose time counts, for something that it answers at once; default: asks the thread pool
 */
export function livedTime(turn: () => Promise<unknown> = pool): () => number {
  let lived = 0
  let over = false
  async function count(): Promise<void> {
    while (!over) {
      await delay(STEP)
      await turn().catch(() => {})
      lived += STEP
    }
  }
  const counting = count()
  // Before the other process, which was started earlier: its end would break a turn off.
  closeLater(() => {
    over = true
    return counting
  })
  return () => lived
}

/**
 * Which part of the processor time of this process was this thread's, until the returned function is called: near 1 if it does all
 * the work, near 0 if others do. Load changes both alike.
 */
export function shareOfThread(): () => number {
  const whole = process.cpuUsage()
  const before = processorTime()
  return () => {
    const { user, system } = process.cpuUsage(whole)
    return (processorTime() - before) / ((user + system) / 1000)
  }
}

const LARGER = 8

/** What `growth` stays below if the work is linear. */
export const LINEAR = 30

/**
 * How many times as long `act` takes for eight times the size, by the processor time of this thread: about 8 if it is linear, 64 if
 * it is quadratic. The shortest of three runs of each size counts. Choose sizes for which quadratic work takes a second.
 */
export function growth(size: number, act: (size: number) => void): number {
  const [small = 0, large = 0] = [size, LARGER * size].map((each) => {
    const durations = [1, 2, 3].map(() => {
      const before = processorTime()
      act(each)
      return processorTime() - before
    })
    return Math.min(...durations)
  })
  // Some kernels count processor time in ticks of 10 ms.
  return large / Math.max(small, 5)
}

/** The processor time of this thread (ms). */
function processorTime(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
