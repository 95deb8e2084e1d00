import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseYaml } from '../../src/config/yaml.ts'

describe('YAML', () => {
  it('is parsed as version 1.2, where off and no are text', () => {
    expect(parseYaml('a: off\nb: no\nc: 1\nd: [true, null]')).toEqual({
      value: { a: 'off', b: 'no', c: 1, d: [true, null] },
    })
  })

  it('may contain aliases', () => {
    expect(parseYaml('a: &x {n: 1}\nb: *x')).toEqual({ value: { a: { n: 1 }, b: { n: 1 } } })
  })

  it.each([
    [
      'a: 1\na: 2',
      'line 2: the key a occurs twice in one mapping, first in line 1; keep one of the two (column 1)',
    ],
    ['a:\n\tb: 1', 'line 2: a tab in the indentation; use spaces (column 1)'],
    [
      'a: b: c',
      'line 1: an unexpected colon; put the value in quotes, or its keys on lines of their own (column 4)',
    ],
    ['a: [1', 'line 1: the indentation is wrong, or a bracket is not closed (column 6)'],
    ['a: "x', 'line 1: the quote that opens here is not closed (column 4)'],
    ['a: @b', 'line 1: a value must not begin with this character; put it in quotes (column 4)'],
    [
      'a: "\\q"',
      'line 1: an unknown escape in a quoted text; write \\\\ for a backslash, or use single quotes (column 5)',
    ],
    ['a: 1\n---\nb: 2', 'line 2: a second document begins; keep everything in one (column 1)'],
    ['? {a: 1}\n: 2', 'line 1: a key must be text (column 3)'],
    ['a: !custom x', 'line 1: a tag, which is not allowed here; write the value without it (column 4)'],
    ['a: !!binary aGk=', 'line 1: a tag, which is not allowed here; write the value without it (column 4)'],
    ['a: *x', 'an alias without its anchor, or too many aliases; write the values out'],
    ['__proto__: {a: 1}', 'a key must not be __proto__'],
    ['a: [{__proto__: 1}]', 'line 1: a.0: a key must not be __proto__'],
  ])('%j is refused: %s', (text, problem) => {
    expect(parseYaml(text)).toEqual({ problem })
  })

  it('may have a number as a key', () => {
    expect(parseYaml('1: x')).toHaveProperty('value')
  })

  it('is refused if its aliases expand exponentially', () => {
    const levels = Array.from({ length: 12 }, (_, i) => {
      const inner = i === 0 ? '[x, x]' : `[${`*l${i - 1}, `.repeat(9)}*l${i - 1}]`
      return `l${i}: &l${i} ${inner}`
    })
    expect(parseYaml(levels.join('\n'))).toHaveProperty('problem')
  })

  it('never appears in a problem, because it may contain a secret', () => {
    for (const text of [
      'a: hunter2 "hunter2" x: hunter2',
      'a: "hunter2" hunter2',
      'a: !hunter2 x',
      'a: *hunter2',
      '{hunter2: [}',
    ]) {
      const parsed = parseYaml(text)
      expect(parsed).toHaveProperty('problem')
      expect(JSON.stringify(parsed)).not.toContain('hunter2')
    }
  })
})

const DEEPER =
  'this line is indented deeper than the one above, which has a value already; begin both in the same column'
const OPEN = 'the quote that opens here is not closed'

describe('H228 a mistake in YAML is named where it was made', () => {
  it.each([
    [
      'a missing blank',
      'upstream:{url: http://192.0.2.7, tls: {}}\npassword: {file: x}\n',
      'line 1: a blank is missing behind `upstream:` (column 10)',
    ],
    ['before a word', 'x: 1\nenforce:false\n', 'line 2: a blank is missing behind `enforce:` (column 9)'],
    ['before a URL', 'a:\n  url:http://h\n  b: 1\n', 'line 2: a blank is missing behind `url:` (column 7)'],
    ['before a list', 'a:[1, 2]\nx: 1\n', 'line 1: a blank is missing behind `a:` (column 3)'],
    [
      'an open quote, at the end of the file',
      'a: 1\nb:\n  url: "http://h\nc:\n  d: e\nf: g\n',
      `line 3: ${OPEN} (column 8)`,
    ],
    ["an open ' that a later one ends", "a: {b: 'x, c: 1}\nd: {e: 'y'}\n", `line 1: ${OPEN} (column 8)`],
    ['an open quote in a list', 'a: ["x, y]\nb: 1\n', `line 1: ${OPEN} (column 5)`],
    ['a key too deep, below text', 'a:\n  b: text\n    c: 1\nd: 2\n', `line 3: ${DEEPER} (column 5)`],
    ['below a mapping', 'a: {b: 1}\n  c: {d: 1}\n', `line 2: ${DEEPER} (column 3)`],
    ['below a quoted text', 'a:\n  b: "x"\n    c: 1\n', `line 3: ${DEEPER} (column 5)`],
    ['below a comment', 'a:\n  b: x\n  # y\n\n    c: 1\n', `line 5: ${DEEPER} (column 5)`],
    ['in a list', 'a:\n  - /a\n    - b: 1\n', `line 3: ${DEEPER} (column 5)`],
  ])('%s', (_what, text, problem) => {
    expect(parseYaml(text)).toEqual({ problem })
  })

  it('quotes no value', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(
          'upstream:{url: SECRET, tls: {}}\na: 1',
          'a: "SECRET\nb: 1',
          'a: SECRET\n   b: 1',
          "a: 'SECRET\nb: 'SECRET",
        ),
        fc.stringMatching(/^[a-z]{12}$/),
        (text, secret) => {
          const parsed = parseYaml(text.replaceAll('SECRET', secret))
          expect('problem' in parsed && parsed.problem.includes(secret)).toBe(false)
          expect(parsed).toHaveProperty('problem')
        },
      ),
    )
  })
})
