import { describe, expect, it } from 'vitest'
import { rightSize } from '../../bench/load/generator.ts'
import { alternate, summarize, summarizeLatencies, summarizePairs } from '../../bench/measure.ts'

describe('Rounds', () => {
  it('run every program once, each time in another order', async () => {
    const order: string[] = []
    const results = await alternate(['a', 'b', 'c'], 3, async (name, round) => {
      order.push(name)
      return `${name}${round}`
    })
    expect(order.join('')).toBe('abcbcacab')
    expect([...results]).toEqual([
      ['a', ['a0', 'a1', 'a2']],
      ['b', ['b0', 'b1', 'b2']],
      ['c', ['c0', 'c1', 'c2']],
    ])
  })

  it('are summarized by the median and the range', () => {
    expect(summarize([5, 1, 3])).toEqual({ median: 3, range: [1, 5] })
    expect(summarize([4, 1, 3, 2])).toEqual({ median: 2.5, range: [1, 4] })
  })

  it('have no summary without measured values', () => {
    expect(summarize([])).toBeUndefined()
    expect(summarize([Number.NaN, Number.POSITIVE_INFINITY])).toBeUndefined()
    expect(summarize([Number.NaN, 2])).toEqual({ median: 2, range: [2, 2] })
  })

  it('are compared with those of a peer one by one, so that a slow moment of the machine affects both', () => {
    const ratio = (a: number, b: number): number => a / b
    expect(summarizePairs([60, 6, 61], [100, 10, 100], ratio)).toEqual({ median: 0.6, range: [0.6, 0.61] })
    expect(summarizePairs([60, Number.NaN], [100, 10], ratio)).toEqual({ median: 0.6, range: [0.6, 0.6] })
    expect(summarizePairs([60], [], ratio)).toBeUndefined()
  })
})

describe('Percentiles', () => {
  it('are measured values, by nearest rank', () => {
    const values = Array.from({ length: 200 }, (_, i) => 200 - i)
    expect(summarizeLatencies(values)).toEqual({ count: 200, p50: 100, p90: 180, p99: 198, max: 200 })
    expect(summarizeLatencies([7])).toEqual({ count: 1, p50: 7, p90: 7, p99: 7, max: 7 })
  })

  it('are sorted as numbers, not as text', () => {
    expect(summarizeLatencies([9, 10, 100]).p50).toBe(10)
  })
})

describe('A load that reads no bodies', () => {
  const expected = { status: 200, body: 'x'.repeat(27), headBytes: 173 }
  const sizes = (each: number): { requests: number; bytes: number } => ({
    requests: 1_000,
    bytes: 1_000 * each,
  })

  it('accepts responses that differ by the digits of a counter', () => {
    expect(rightSize(sizes(200), expected, 64)).toBe(true)
    expect(rightSize(sizes(198), expected, 64)).toBe(true)
  })

  it('detects responses without their body', () => {
    expect(rightSize(sizes(173), expected, 64)).toBe(false)
  })

  it('detects longer responses, and ignores one incomplete response per connection', () => {
    expect(rightSize({ requests: 10, bytes: 10 * 200 + 64 * 199 }, expected, 64)).toBe(true)
    expect(rightSize(sizes(230), expected, 64)).toBe(false)
  })
})
