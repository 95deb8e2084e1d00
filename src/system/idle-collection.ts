import { type EventLoopUtilization, eventLoopUtilization } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Clock } from './clock.ts'
import { everySecond } from './every-second.ts'

/** The process is idle if the event loop had less than this share of work for a second. */
const IDLE_SHARE = 0.02

/** It is busy if the event loop had more than this share of work. */
const BUSY_SHARE = 0.3

/**
 * How much the heap of a busy process may grow until the next full collection (percent of what the last one left). V8's own choice, 0, is
 * often less: a gigabyte that is sent up over TLS took 4.0 s of processor time with it, and 2.9 with this one. A change takes effect with the next full collection.
 */
const BUSY_GROWTH = 300

/** A heap that has grown less than this (bytes) since the last collection is not worth another one. */
const LEAST_GROWTH = 4 * 1024 * 1024

/** The same for the whole private memory, which moves more by itself: the C library keeps what TLS has freed. */
const LEAST_PRIVATE_GROWTH = 16 * 1024 * 1024

export type CollectGarbage = (options: { readonly type: 'major'; readonly flavor: 'last-resort' }) => void

let gc: CollectGarbage | undefined

/**
 * Collects garbage with V8's own function. It is exposed at the first call, because `--expose-gc` on the command line makes V8
 * reject code that was compiled without it.
 */
export const collectGarbage: CollectGarbage = (options) => {
  if (gc === undefined) {
    setFlagsFromString('--expose-gc')
    // V8 would collect twice more, half a minute later, and find nothing: 23 ms each. This is the time that it waits (ms).
    setFlagsFromString(`--memory-reducer-delay-ms=${2 ** 31 - 1}`)
    // The cast holds because this is V8's `gc`, which takes these options.
    gc = runInNewContext('gc') as CollectGarbage
  }
  // The second one also gives up the bytecode of functions that did not run since the first: 2 MiB of the start.
  setFlagsFromString('--bytecode-old-age=1')
  gc(options)
  gc(options)
  setFlagsFromString('--bytecode-old-age=6')
}

interface Dependencies {
  readonly clock: Pick<Clock, 'every'>
  /** Undefined: nothing is collected. */
  readonly collect: CollectGarbage | undefined
  /** The work of the event loop between `before`, or the start of the process, and now. */
  readonly workSince?: (before?: EventLoopUtilization) => EventLoopUtilization
  /** The size of the heap (bytes). */
  readonly heapSize?: () => number
  /** The private memory of the process (bytes): the heap, and what lies beside it, such as the state of TLS connections. */
  readonly privateSize?: () => number
  /** What clients make the process hold (bytes). */
  readonly held?: () => number
  /** Whether clients hold so little that the heap of a busy process may grow. */
  readonly mayGrow?: () => boolean
  readonly setGrowth?: (percent: number) => void
  /** Whether a flood is over since the last call: its memory is given back although the process works on. */
  readonly takeFloodEnd?: () => boolean
}

/**
 * Returns memory to the system when the process is idle. V8 collects garbage only when it allocates, so without this the memory of
 * the start and of each burst of requests stays taken: 4 MiB after the start, 18 MiB after 200,000 requests (P6). A collection
 * takes 20 to 80 ms, in which a request waits. It is not repeated until the memory has grown. After a flood it does not wait for an idle
 * process, because clients may never let it be idle.
 *
 * While the process is busy and clients hold little, V8 collects less often.
 */
export function collectWhenIdle({
  clock,
  collect,
  workSince = eventLoopUtilization,
  heapSize = sizeOfHeap,
  privateSize = () => 0,
  held = () => 0,
  mayGrow = () => true,
  setGrowth = setHeapGrowth,
  takeFloodEnd = () => false,
}: Dependencies): { readonly close: () => void } {
  if (collect === undefined) return { close: () => {} }
  let before = workSince()
  let [heapBefore, privateBefore, heldBefore] = [0, 0, 0]
  let idle = false
  const hasGrown = (): boolean => heapSize() - heapBefore >= LEAST_GROWTH
  const hasGrownBesideTheHeap = (): boolean => privateSize() - privateBefore >= LEAST_PRIVATE_GROWTH
  /** What clients have given back is garbage, or free pages of the C library: the process does not grow by it. */
  const isFreed = (): boolean => heldBefore - held() >= LEAST_PRIVATE_GROWTH
  let growth = 0
  const looks = everySecond(clock, () => {
    const { utilization } = workSince(before)
    before = workSince()
    const wanted = utilization > BUSY_SHARE && mayGrow() ? BUSY_GROWTH : 0
    if (wanted !== growth) setGrowth(wanted)
    growth = wanted
    const wasIdle = idle
    idle = utilization < IDLE_SHARE
    if (!takeFloodEnd() && !idle) return
    // A process that stays idle does not grow beside its heap, so it reads no file for that.
    const isWorth = hasGrown() || isFreed() || (!(idle && wasIdle) && hasGrownBesideTheHeap())
    if (!isWorth) return
    collect({ type: 'major', flavor: 'last-resort' })
    heapBefore = heapSize()
    privateBefore = privateSize()
    heldBefore = held()
  })
  return {
    close(): void {
      looks.close()
      if (growth !== 0) setGrowth(0)
      growth = 0
    },
  }
}

function setHeapGrowth(percent: number): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`)
}

function sizeOfHeap(): number {
  const { total_heap_size: heap, external_memory: external } = getHeapStatistics()
  return heap + external
}
