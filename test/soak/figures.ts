import type { Served } from '../process/serve.ts'
import { figuresOf } from '../support/process-figures.ts'

/** What the sidecar holds at one moment. */
export interface Sample {
  /** MiB. */
  readonly resident: number
  /** MiB. */
  readonly heap: number
  readonly descriptors: number
  readonly sockets: number
}

export async function takeSample(served: Served): Promise<Sample> {
  const { resident, descriptors, sockets } = figuresOf(served.pid)
  const heap = await served.metric('nodejs_heap_size_used_bytes')
  return { resident: resident / 2 ** 20, heap: heap / 2 ** 20, descriptors, sockets }
}

/** How a figure went: the medians of the first and the last third behind the warm-up. */
export interface Course {
  readonly name: keyof Sample
  readonly first: number
  readonly last: number
  readonly most: number
  /** The last third may have so much at most. */
  readonly bound: number
  readonly flat: boolean
}

/** What may be more at the end than at the beginning: a part, and a fixed amount for noise. */
const TOLERANCE: Readonly<Record<keyof Sample, readonly [number, number]>> = {
  resident: [0.1, 16],
  heap: [0.15, 8],
  descriptors: [0.1, 15],
  sockets: [0.1, 15],
}

/** The part of the samples, from the beginning, in which everything still fills. */
const WARM_UP = 0.2

/** Fewer samples than this say nothing. */
const FEWEST = 30

/** Undefined where the run was too short to tell. */
export function coursesOf(samples: readonly Sample[]): readonly Course[] | undefined {
  if (samples.length < FEWEST) return undefined
  const warm = samples.slice(Math.floor(samples.length * WARM_UP))
  const third = Math.floor(warm.length / 3)
  return (['resident', 'heap', 'descriptors', 'sockets'] as const).map((name) => {
    const values = warm.map((sample) => sample[name])
    const first = median(values.slice(0, third))
    const last = median(values.slice(-third))
    const [part, noise] = TOLERANCE[name]
    const bound = first * (1 + part) + noise
    return { name, first, last, most: Math.max(...values), bound, flat: last <= bound }
  })
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[sorted.length >> 1] ?? 0
}
