import type { Check } from './figure.ts'
import type { Result } from './result.ts'

/** A part of the earlier value: what two quiet runs of the same program differ by. */
export const TOLERANCE = 0.1

export interface Comparison {
  readonly id: string
  readonly before: number
  readonly now: number
  /** By how much it may be worse, in its unit. */
  readonly allowed: number
  readonly unit: string
  readonly regressed: boolean
}

/**
 * Holds one result against an earlier one: what both have, and what can be compared. Ratios to peers can be anywhere;
 * microseconds only on the same machine with the same Node; latencies in milliseconds never, because they are mostly
 * the machine's. Allowed is `TOLERANCE` of the earlier value, and half of what the rounds of either run were apart.
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
