/**
 * The quantile of a histogram, as Prometheus's `histogram_quantile` computes it: interpolated within the bucket that holds it, and
 * the highest bound if it lies above. NaN without observations.
 *
 * @param quantile between 0 and 1
 * @param counts observations in each bucket and in no lower one; one more than there are bounds
 * @param bounds the upper bounds of the buckets, ascending
 */
export function quantileOf(quantile: number, counts: ArrayLike<number>, bounds: readonly number[]): number {
  let total = 0
  for (let i = 0; i < counts.length; i += 1) total += counts[i] ?? 0
  if (total === 0) return Number.NaN
  const rank = quantile * total
  let below = 0
  let from = 0
  for (let i = 0; i < bounds.length; i += 1) {
    const count = counts[i] ?? 0
    const to = bounds[i] ?? 0
    if (count > 0 && below + count >= rank) return from + ((to - from) * (rank - below)) / count
    below += count
    from = to
  }
  return from
}
