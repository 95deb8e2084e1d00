import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatDuration, parseDuration } from '../../src/config/units.ts'

describe('a duration', () => {
  it.each([
    [10, 10_000],
    [0.5, 500],
    [2.3, 2300],
    ['10', 10_000],
    ['0', 0],
    ['500ms', 500],
    ['10s', 10_000],
    ['1.5s', 1500],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
  ])('%j is %i ms', (given, value) => {
    expect(parseDuration(given)).toEqual({ value })
  })

  it.each([
    '',
    '10 s',
    '-1s',
    -1,
    '1h30m',
    '1w',
    '1e3',
    '10S',
    's',
    '.5s',
    '1,5s',
    Number.NaN,
    Number.POSITIVE_INFINITY,
  ])('%j is refused with examples of durations', (given) => {
    expect(parseDuration(given)).toEqual({
      problem: 'must be a duration: a number of seconds, or 500ms, 10s, 5m, 1h, 7d',
    })
  })

  it.each(['0.5ms', 0.0001, '1.0005s'])('%j is refused, because timers count whole milliseconds', (given) => {
    expect(parseDuration(given)).toEqual({ problem: 'must be whole milliseconds' })
  })

  it('is written in the largest unit that fits', () => {
    expect([0, 1, 1500, 60_000, 90_000, 3_600_000, 86_400_000, 604_800_000].map(formatDuration)).toEqual([
      '0s',
      '1ms',
      '1500ms',
      '1m',
      '90s',
      '1h',
      '1d',
      '7d',
    ])
  })

  it('survives formatting and parsing', () => {
    fc.assert(
      fc.property(fc.nat({ max: 400 * 86_400_000 }), (value) => {
        expect(parseDuration(formatDuration(value))).toEqual({ value })
        expect(parseDuration(value / 1000)).toEqual({ value })
      }),
    )
  })
})
