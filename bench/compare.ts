import type { Check, Result } from './figure.ts'

/** Fraction of the earlier value: two runs of the same program on an idle machine differ by as much. */
export const TOLERANCE = 0.1

export interface Comparison {
  readonly id: string
  readonly before: number
  readonly now: number
  /** The value may be worse by this much, in its unit. */
  readonly allowed: number
  readonly unit: string
  readonly regressed: boolean
}

/**
 * Compares the checks that two results share. Ratios to peers are comparable between all machines, microseconds only between
 * runs on the same processor and the same Node, latencies in milliseconds never, because they depend mostly on the machine.
 * `allowed` is `TOLERANCE` of the earlier value plus half of the range of the rounds of each run.
 */
export function compareResults(before: Result, now: Result): Comparison[] {
  const sameMachine =
    before.machine.processor === now.machine.processor && before.machine.node === now.machine.node
  const earlier = new Map(checksOf(before).map((check) => [check.id, check]))
  return checksOf(now).flatMap((check) => {
    const was = earlier.get(check.id)
    if (was?.value === undefined || check.value === undefined) return []
    if (check.comparable === 'never' || (check.comparable === 'same machine' && !sameMachine)) return []
    const allowed = Math.abs(was.value) * TOLERANCE + (width(was) + width(check)) / 2
    const worse = check.better === 'more' ? was.value - check.value : check.value - was.value
    return [
      {
        id: check.id,
        before: was.value,
        now: check.value,
        allowed,
        unit: check.unit,
        regressed: worse > allowed,
      },
    ]
  })
}

function checksOf({ figures }: Result): Check[] {
  return figures.flatMap(({ checks }) => checks)
}

function width({ range }: Check): number {
  return range === undefined ? 0 : range[1] - range[0]
}
