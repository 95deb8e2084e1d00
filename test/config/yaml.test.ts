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
    ['a: "x', 'line 1: a closing quote, a comma, a colon or a bracket is missing (column 6)'],
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
