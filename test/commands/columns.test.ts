import { expect, it } from 'vitest'
import {
  columnsOf,
  widthOf as columnsTaken,
  fitted,
  linesOf,
  tableOf,
  wrapped,
} from '../../src/commands/columns.ts'

const widthOf = (text: string): number => Math.max(...text.split('\n').map(({ length }) => length))

it('H233 H328 a text is broken between words; one that is longer than a line stays whole, for the terminal to break', () => {
  const long = 'x'.repeat(200)
  const wide = 'y'.repeat(75)
  const text = `a ${'word '.repeat(40)}${long} end ${wide}`
  const lines = wrapped(text, 10, 80).split('\n')
  expect(
    widthOf(lines.filter((line) => line !== long && line !== `${long} end`).join('\n')),
  ).toBeLessThanOrEqual(80)
  expect(lines).toContain(long)
  // It fits a line, but not beside the indent, so it gets less of that.
  expect(lines.at(-1)).toBe(`     ${wide}`)
  expect(lines.map((line) => line.trim()).join(' ')).toBe(text)
  expect(wrapped('', 4, 80)).toBe('')
})

it('H328 elsewhere than on a terminal a text is one line', () => {
  const text = 'word '.repeat(40)
  expect(wrapped(text, 10, columnsOf({}))).toBe(text)
  expect(wrapped(text, 10, columnsOf({ isTTY: false }))).toBe(text)
  expect(wrapped(text, 10, columnsOf({ isTTY: true }))).not.toBe(text)
  const stack = `TypeError: ${text}\n    at main`
  expect(wrapped(stack, 0, columnsOf({ isTTY: true }))).toBe(stack)
})

it('H328 a command that a remedy names is on one line', () => {
  const command =
    'cp -p /etc/postern/password /etc/postern/password.new && postern hash-password > /etc/postern/password.new;'
  const lines = wrapped(
    `others can read it, so change the password now; ${command} then every client has to log in`,
    8,
    80,
  )
  expect(lines.split('\n')).toContain(command)
  const [, mode] = wrapped(
    `${'word '.repeat(12)}and the file is open; chmod 0600 /etc/postern/p`,
    8,
    80,
  ).split('\n')
  expect(mode).toMatch(/chmod 0600 \/etc\/postern\/p$/)
})

it('H328 a wide character takes two columns, and a mark over another none', () => {
  expect(['abc', '监控', 'مراقب', 'e\u0301', '\u{1f600}', 'ｱ', 'Ａ', 'プ', '한'].map(columnsTaken)).toEqual([
    3, 4, 5, 1, 2, 1, 2, 2, 2,
  ])
  expect(
    linesOf([
      ['监控', 'a'],
      ['abcdef', 'b'],
    ]),
  ).toEqual(['监控    a', 'abcdef  b'])
})

it('H328 a text of several lines fits a terminal, line by line, and what follows stands below the text of its line', () => {
  const item = `  5  the device: ${'it '.repeat(30)}end`
  const lines = fitted(`What?\n${item}\n\n`).split('\n')
  expect([lines[0], lines.at(-1), lines.at(-2)]).toEqual(['What?', '', ''])
  expect(lines[2]).toMatch(/^ {5}it /)
  expect(columnsTaken(lines[1] ?? '')).toBeLessThanOrEqual(80)
  expect(
    lines
      .slice(1, -2)
      .map((line) => line.trim())
      .join(' '),
  ).toBe(item.trim())
})

it('H328 a table that is too wide has the ids on lines of their own', () => {
  const id = 'i'.repeat(49)
  const rows = [[id, '2001:db8:1234:5678:9abc:def0:1234:5678', '5m']]
  expect(tableOf(['ID', 'CLIENT', 'AGE'], rows, 80)).toEqual([
    'ID\n  CLIENT                                  AGE',
    `${id}\n  2001:db8:1234:5678:9abc:def0:1234:5678  5m`,
  ])
  expect(tableOf(['ID', 'CLIENT', 'AGE'], rows, columnsOf({}))).toHaveLength(2)
  expect(tableOf(['ID', 'CLIENT', 'AGE'], rows, columnsOf({})).join()).not.toContain('\n')
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

it('H328 a table may have as many rows as there can be grants', () => {
  const rows = Array.from({ length: 200_000 }, (_, i) => [`id${i}`, '192.0.2.7', '5m'])
  expect(tableOf(['ID', 'CLIENT', 'AGE'], rows, 80).at(-1)).toBe('id199999  192.0.2.7  5m')
})
