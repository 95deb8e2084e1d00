import { expect, it } from 'vitest'
import { linesOf, spanOf, timeOf, wrapped } from '../../src/commands/columns.ts'

const widthOf = (text: string): number => Math.max(...text.split('\n').map(({ length }) => length))

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
  expect(timeOf(1_500)).toBe('1970-01-01T00:00:01Z')
})

it('H233 a text is broken between words, and a word that is wider than the terminal within', () => {
  const text = `a ${'word '.repeat(40)}${'x'.repeat(200)} end`
  const lines = wrapped(text, 10).split('\n')
  expect(
    widthOf(lines.map((line, i) => (i === 0 ? ' '.repeat(10) : '') + line).join('\n')),
  ).toBeLessThanOrEqual(80)
  expect(
    lines
      .join(' ')
      .replace(/ +/g, ' ')
      .replace(/(x+) (?=x)/g, '$1'),
  ).toBe(text)
  expect(wrapped('', 4)).toBe('')
})

it('each column is as wide as its widest cell, and a line ends with its text', () => {
  expect(
    linesOf([
      ['A', 'B'],
      ['long', ''],
      ['x', 'y'],
    ]),
  ).toEqual(['A     B', 'long', 'x     y'])
})
