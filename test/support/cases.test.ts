import { expect, it } from 'vitest'
import { inside, readCases } from './cases.ts'
import { bytesOf, fieldsOf, shownBytes } from './shown-bytes.ts'

const FAMILY = { given: ['around', 'bytes'], results: ['is'], remarks: ['why'], play: () => ({}) }

const read = (...lines: string[]) => readCases(lines.join('\n'), 'x.txt', FAMILY)

it('a case has the ids and the texts of the headings above it, and a round for each result', () => {
  const cases = read(
    '# C1 All',
    '    around    <…>',
    '## H2 Some, with prose below',
    'Prose.',
    '### H3 one',
    '    bytes     a',
    '              b',
    '    is        ab',
    '    bytes     c',
    '    why       so',
    '    is        c',
  )
  const around = { label: 'around', lines: ['<…>'] }
  expect(cases).toEqual([
    {
      ...{ section: 'Some, with prose below', title: 'C1 H2 H3 one', inherited: [around], block: [5, 11] },
      rounds: [
        {
          ...{ line: 6, given: [{ label: 'bytes', lines: ['a', 'b'] }], remarks: [] },
          results: [{ label: 'is', lines: ['ab'] }],
        },
        {
          ...{ line: 9, given: [{ label: 'bytes', lines: ['c'] }] },
          ...{ results: [{ label: 'is', lines: ['c'] }], remarks: [{ label: 'why', lines: ['so'] }] },
        },
      ],
    },
  ])
})

it.each([
  [['## S', '### a', '    byte      x'], 'x.txt:3: byte is none of around, bytes, is, why'],
  [['## S', '### a', '', '    bytes     x'], 'x.txt:2: the case gives nothing'],
  [['## S', '', '    bytes     x'], 'x.txt:3: a line of a case stands directly below its heading'],
  [['## S', '### a', '  bytes x'], 'x.txt:2: the case gives nothing'],
  [['## S', '### a', '              x'], 'x.txt:3: the first line has no label'],
  [
    ['## S', '### a', '    bytes     x '],
    'x.txt:3: a blank at the end of a line, where an editor may remove it',
  ],
  [
    ['## S', '### a', '    bytes     x', '### a', '    bytes     y'],
    'x.txt:4: another case of this section has this name',
  ],
])('a file that is none of cases is refused, with the line: %j', (lines, why) => {
  expect(() => read(...lines)).toThrow(why)
})

it('bytes are shown, and read again', () => {
  const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
  expect(bytesOf(shownBytes(all.toString('latin1')))).toEqual(all)
  expect(bytesOf('GET / HTTP/1.1\\r\\n\n\\r\\n').toString()).toBe('GET / HTTP/1.1\r\n\r\n')
  expect(() => bytesOf('a\\0')).toThrow('\\0 is no byte: write \\r, \\n, \\t, \\\\ or \\x00 to \\xff')
  expect(() => bytesOf('ä')).toThrow('write "ä" as its bytes: \\x00 to \\xff')
  expect(fieldsOf('A: b:\\xe4\nC:')).toEqual(['A', 'b:\xe4', 'C', ''])
  expect([inside('<…>', '$&'), inside(undefined, 'a')]).toEqual(['<$&>', 'a'])
})
