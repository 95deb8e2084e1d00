import { setTimeout as delay } from 'node:timers/promises'
import { closeLater } from './cleanup.ts'

/** Milliseconds. A turn costs a request to each process whose time counts. */
const STEP = 20

/**
 * A clock (ms) that leaves out the time for which this thread waits for a processor: of each turn of the event loop it counts the
 * work, and at most 20 ms of waiting. What is promised within a second takes a second of it on a busy machine, too, and what comes
 * after two seconds takes two. It stops with the test.
 * @param turn asks another process whose time counts, for something that it answers at once: a turn ends with the reply
 */
export function livedTime(turn: () => Promise<unknown> = async () => {}): () => number {
  let lived = 0
  let over = false
  async function count(): Promise<void> {
    while (!over) {
      const [start, before] = [performance.now(), processorTime()]
      await delay(STEP)
      await turn().catch(() => {})
      lived += Math.min(performance.now() - start, STEP + processorTime() - before)
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

const TICK = 5

/**
 * Adds up the processor time of this thread from tick to tick (5 ms) until the returned function is called, which resolves with its
 * 99th percentile (ms). What blocks the event loop works on it, while the wait of a busy machine for a processor does not count.
 */
export function workOfTurns(): () => Promise<number> {
  const turns: number[] = []
  let over = false
  async function count(): Promise<void> {
    while (!over) {
      const before = processorTime()
      await delay(TICK)
      turns.push(processorTime() - before)
    }
  }
  const counting = count()
  return async () => {
    over = true
    await counting
    return turns.sort((a, b) => a - b)[Math.floor(0.99 * turns.length)] ?? Number.NaN
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
