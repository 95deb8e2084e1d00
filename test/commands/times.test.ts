import { expect, it } from 'vitest'
import { spanOf, timeText } from '../../src/commands/times.ts'

it('H233 a length of time is in its largest unit, and a time has no milliseconds', () => {
  const minute = 60_000
  expect([-5, 59_999, minute, 59 * minute, 47 * 60 * minute, 7 * 24 * 60 * minute].map(spanOf)).toEqual([
    '0s',
    '59s',
    '1m',
    '59m',
    '47h',
    '7d',
  ])
  expect(timeText(1_500)).toBe('1970-01-01T00:00:01Z')
})
