import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseYaml } from '../../src/config/yaml.ts'
import { runCases } from '../support/cases.ts'
import { textOf } from './sources.ts'

describe('YAML', () => {
  it('is parsed as version 1.2, where off and no are text', () => {
    expect(parseYaml('a: off\nb: no\nc: 1\nd: [true, null]')).toEqual({
      value: { a: 'off', b: 'no', c: 1, d: [true, null] },
    })
  })

  it('may contain aliases', () => {
    expect(parseYaml('a: &x {n: 1}\nb: *x')).toEqual({ value: { a: { n: 1 }, b: { n: 1 } } })
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

runCases(join(import.meta.dirname, 'yaml.txt'), {
  given: ['yaml'],
  results: ['refused'],
  play({ yaml = '' }) {
    const parsed = parseYaml(textOf(yaml))
    return { refused: 'problem' in parsed ? parsed.problem : undefined }
  },
})

it('H228 a mistake in YAML is named without a value', () => {
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
