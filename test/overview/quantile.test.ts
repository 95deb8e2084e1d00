import fc from 'fast-check'
import { expect, it } from 'vitest'
import { quantileOf } from '../../src/overview/history.ts'

/** `histogram_quantile` as Prometheus writes it: a search in the cumulative counts. */
function bucketQuantile(quantile: number, counts: readonly number[], bounds: readonly number[]): number {
  const cumulative = counts.map((_, i) => counts.slice(0, i + 1).reduce((sum, count) => sum + count, 0))
  const total = cumulative.at(-1) ?? 0
  if (total === 0) return Number.NaN
  const rank = quantile * total
  const found = cumulative.slice(0, -1).findIndex((count) => count >= rank)
  if (found === -1) return bounds.at(-1) ?? Number.NaN
  const start = found === 0 ? 0 : (bounds[found - 1] ?? 0)
  const before = found === 0 ? 0 : (cumulative[found - 1] ?? 0)
  return start + ((bounds[found] ?? 0) - start) * ((rank - before) / (counts[found] ?? 0))
}

const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.1, 1]

it('H148 quantiles are those of histogram_quantile, and lie in the bucket of the observation that they are about', () => {
  const counts = fc.array(fc.nat(1000), { minLength: BOUNDS.length + 1, maxLength: BOUNDS.length + 1 })
  fc.assert(
    fc.property(counts, fc.double({ min: 0.01, max: 1, noNaN: true }), (observed, quantile) => {
      const found = quantileOf(quantile, observed, BOUNDS)
      const expected = bucketQuantile(quantile, observed, BOUNDS)
      if (Number.isNaN(expected)) expect(found).toBeNaN()
      else expect(found).toBeCloseTo(expected, 9)
    }),
  )
})

it('H148 a quantile above the highest bound is that bound, and without observations there is none', () => {
  expect(quantileOf(0.99, [0, 0, 0, 0, 0, 0, 5], BOUNDS)).toBe(1)
  expect(quantileOf(0.5, [0, 0, 0, 10, 0, 0, 0], BOUNDS)).toBeCloseTo(0.0075, 9)
  expect(quantileOf(0.5, [0, 0, 0, 0, 0, 0, 0], BOUNDS)).toBeNaN()
})
