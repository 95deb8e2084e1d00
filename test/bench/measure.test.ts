import { describe, expect, it } from 'vitest'
import { rightSize } from '../../bench/load/generator.ts'
import { alternate, summarize, summarizeLatencies, summarizePairs } from '../../bench/measure.ts'

describe('Rounds', () => {
  it('have everybody run once in each, beginning with another one each time', async () => {
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

  it('amount to the median, and to the lowest and the highest', () => {
    expect(summarize([5, 1, 3])).toEqual({ median: 3, range: [1, 5] })
    expect(summarize([4, 1, 3, 2])).toEqual({ median: 2.5, range: [1, 4] })
  })

  it('amount to nothing where nothing could be measured', () => {
    expect(summarize([])).toBeUndefined()
    expect(summarize([undefined, Number.NaN, Number.POSITIVE_INFINITY])).toBeUndefined()
    expect(summarize([undefined, 2])).toEqual({ median: 2, range: [2, 2] })
  })

  it('are held against those of a peer one by one, so that a slow moment of the machine meets both', () => {
    const ratio = (a: number, b: number): number => a / b
    expect(summarizePairs([60, 6, 61], [100, 10, 100], ratio)).toEqual({ median: 0.6, range: [0.6, 0.61] })
    expect(summarizePairs([60, undefined], [100, 10], ratio)).toEqual({ median: 0.6, range: [0.6, 0.6] })
    expect(summarizePairs([60], [], ratio)).toBeUndefined()
  })
})

describe('Percentiles', () => {
  it('are values that were there, by nearest rank', () => {
    const values = Array.from({ length: 200 }, (_, i) => 200 - i)
    expect(summarizeLatencies(values)).toEqual({ count: 200, p50: 100, p90: 180, p99: 198, max: 200 })
    expect(summarizeLatencies([7])).toEqual({ count: 1, p50: 7, p90: 7, p99: 7, max: 7 })
  })

  it('are in order of size, not of spelling', () => {
    expect(summarizeLatencies([9, 10, 100]).p50).toBe(10)
  })
})

describe('A load that reads no bodies', () => {
  const answer = { status: 200, body: 'x'.repeat(27), headBytes: 173 }
  const sizes = (each: number): { requests: number; bytes: number } => ({
    requests: 1_000,
    bytes: 1_000 * each,
  })

  it('takes answers that differ by the digits of a counter for the expected ones', () => {
    expect(rightSize(sizes(200), answer, 64)).toBe(true)
    expect(rightSize(sizes(198), answer, 64)).toBe(true)
  })

  it('notices answers without their body', () => {
    expect(rightSize(sizes(173), answer, 64)).toBe(false)
  })

  it('notices answers that are longer, but for one that was cut off at the end on each connection', () => {
    expect(rightSize({ requests: 10, bytes: 10 * 200 + 64 * 199 }, answer, 64)).toBe(true)
    expect(rightSize(sizes(230), answer, 64)).toBe(false)
  })
})
