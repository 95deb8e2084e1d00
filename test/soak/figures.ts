import type { Served } from '../process/serve.ts'
import { figuresOf } from '../support/processes.ts'

/** The resources of the sidecar at one moment. */
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

/** The course of a figure: the medians of the first and the last third after the warm-up. */
export interface Course {
  readonly name: keyof Sample
  readonly first: number
  readonly last: number
  readonly most: number
  /** The highest permitted median of the last third. */
  readonly bound: number
  readonly flat: boolean
}

/** How much a figure may grow until the end: a fraction, and a fixed amount for noise. */
const TOLERANCE: Readonly<Record<keyof Sample, readonly [number, number]>> = {
  resident: [0.1, 16],
  heap: [0.15, 8],
  descriptors: [0.1, 15],
  sockets: [0.1, 15],
}

/** The fraction of the samples at the beginning that is ignored, because caches and pools still fill. */
const WARM_UP = 0.2

/** With fewer samples nothing is judged. */
const FEWEST = 30

/** The courses of all figures; undefined if the run was too short. */
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
