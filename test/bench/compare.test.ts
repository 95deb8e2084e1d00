import { describe, expect, it } from 'vitest'
import { compareResults } from '../../bench/compare.ts'
import { type Check, verdictOf } from '../../bench/figure.ts'
import { aCheck, aResult } from './a-result.ts'

function regressed(before: Partial<Check>, now: Partial<Check>, processor = 'the same'): boolean | undefined {
  const [comparison] = compareResults(
    aResult({ checks: [aCheck(before)] }),
    aResult({ checks: [aCheck({ ...before, ...now })], processor }),
  )
  return comparison?.regressed
}

describe('Compared with an earlier result, a figure', () => {
  it('may be worse by a tenth, and no more', () => {
    expect(regressed({ value: 0.6 }, { value: 0.541 })).toBe(false)
    expect(regressed({ value: 0.6 }, { value: 0.539 })).toBe(true)
  })

  it('may be better by any amount', () => {
    expect(regressed({ value: 0.6 }, { value: 6 })).toBe(false)
    expect(regressed({ value: 60, better: 'less' }, { value: 6 })).toBe(false)
  })

  it('is worse if it grows although less is better', () => {
    expect(regressed({ value: 60, better: 'less' }, { value: 65 })).toBe(false)
    expect(regressed({ value: 60, better: 'less' }, { value: 67 })).toBe(true)
  })

  it('may also be worse by half of the spread of the rounds in each run', () => {
    const before = { value: 1, range: [0.9, 1.1] } as const
    expect(regressed(before, { value: 0.71, range: [0.6, 0.8] })).toBe(false)
    expect(regressed(before, { value: 0.69, range: [0.6, 0.8] })).toBe(true)
  })

  it('is compared on any machine if it is a ratio, on the same machine if it is in µs, and never if it is in ms', () => {
    const worse = { value: 0.1 }
    expect(regressed({ value: 1, comparable: 'anywhere' }, worse, 'another')).toBe(true)
    expect(regressed({ value: 1, comparable: 'same machine' }, worse)).toBe(true)
    expect(regressed({ value: 1, comparable: 'same machine' }, worse, 'another')).toBeUndefined()
    expect(regressed({ value: 1, comparable: 'never' }, worse)).toBeUndefined()
  })

  it('is not compared if one of the two runs does not have it', () => {
    expect(regressed({ value: 1 }, { value: undefined })).toBeUndefined()
    expect(regressed({ value: 1 }, { id: 'P1 new' })).toBeUndefined()
  })
})

describe('The verdict on a figure', () => {
  it('is `pass` up to the threshold and `short` beyond it', () => {
    expect(verdictOf(aCheck({ better: 'more', reach: 0.6, value: 0.6 }))).toBe('pass')
    expect(verdictOf(aCheck({ better: 'more', reach: 0.6, value: 0.599 }))).toBe('short')
    expect(verdictOf(aCheck({ better: 'less', reach: 5, value: 5 }))).toBe('pass')
    expect(verdictOf(aCheck({ better: 'less', reach: 5, value: 5.01 }))).toBe('short')
  })

  it('is `aim` if the aim is also reached', () => {
    expect(verdictOf(aCheck({ reach: 0.6, aim: 0.75, value: 0.74 }))).toBe('pass')
    expect(verdictOf(aCheck({ reach: 0.6, aim: 0.75, value: 0.75 }))).toBe('aim')
  })

  it('is `measured` without a threshold, and `absent` without a value', () => {
    expect(verdictOf(aCheck({ reach: undefined, value: 1 }))).toBe('measured')
    expect(verdictOf(aCheck({ reach: 1, value: undefined }))).toBe('absent')
  })
})
