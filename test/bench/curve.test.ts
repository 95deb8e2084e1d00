import { describe, expect, it } from 'vitest'
import { bendsOf, curveFindings, type Point } from '../../bench/figures/curve.ts'

const ABOUT = {
  what: 'things',
  rises: 'THE RISE',
  falls: 'THE FALL',
} as const

function curve(rates: readonly number[], busy = 1): Point[] {
  return rates.map((rate, i) => ({ x: 10 ** i, rate, busy, memory: 100 + i, failed: 0 }))
}

function notesOf(points: readonly Point[]): string {
  return curveFindings(ABOUT, { postern: points }).notes.join('\n')
}

describe('A curve', () => {
  it('has bends where it reaches 90% of its best rate and where it finally drops below that', () => {
    expect(bendsOf(curve([10, 50, 95, 100, 92, 60, 30]))).toEqual({ reached: 100, left: 100_000 })
  })

  it('does not leave its plateau by a dip', () => {
    expect(bendsOf(curve([100, 60, 100]))).toEqual({ reached: 1, left: undefined })
  })

  it('is flat without such bends', () => {
    expect(bendsOf(curve([95, 100, 98]))).toEqual({ reached: 1, left: undefined })
    expect(notesOf(curve([95, 100, 98]))).toContain('flat over things')
  })

  it('has its known explanation only if the proxy was the bottleneck', () => {
    expect(notesOf(curve([50, 100, 50]))).toMatch(
      /plateau at 10 things: THE RISE[\s\S]*down at 100 things: THE FALL/,
    )
    const other = notesOf(curve([50, 100, 50], 0.4))
    expect(other).toContain('40 % busy')
    expect(other).not.toContain('THE')
  })

  it('is void if responses were wrong', () => {
    const points = [{ x: 8, rate: 1, busy: 1, memory: Number.NaN, failed: 3 }]
    const { faults } = curveFindings(ABOUT, { postern: points })
    expect(faults).toEqual(['postern: 3 failures with 8 things'])
  })
})
