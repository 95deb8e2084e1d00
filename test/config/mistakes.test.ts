import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { SetupError } from '../../src/system/setup-error.ts'
import { inside, runCases } from '../support/cases.ts'
import { load, MINIMAL, problemsIn, textOf } from './sources.ts'

/** What `hunter2` stands for in the cases: no problem repeats it. */
const SECRET = 'hunter2'

/** The text of a variable by its name. */
function variable(text: string): readonly [string, string] {
  const equals = text.indexOf('=')
  return [text.slice(0, equals), text.slice(equals + 1)]
}

const linesOf = (text: string | undefined): string[] => (text === undefined ? [] : textOf(text).split('\n'))

// `line` stands in `around` in place of its ellipsis; `file` is a whole file instead.
runCases(join(import.meta.dirname, 'mistakes'), {
  given: ['around', 'line', 'file', 'env', 'set'],
  results: ['says'],
  play({ around, line = '', file, env, set }) {
    const text = `${textOf(file ?? inside(around, line))}\n`
    const given = { file: text, env: Object.fromEntries(linesOf(env).map(variable)), sets: linesOf(set) }
    const says = problemsIn(given).join('\n')
    expect(says).not.toContain(SECRET)
    return { says: says === '' ? 'nothing' : says }
  },
})

it('a configuration with problems throws a SetupError, a line for each', () => {
  const loading = (): unknown => load({ file: 'a: 1\nb: 2\n' })
  expect(loading).toThrow(SetupError)
  expect(loading).toThrow(/^(?:.+\n){3}.+$/)
})

it('problems without a file name none', () => {
  expect(() => loadConfig({ env: {}, sets: [] })).toThrow(
    /^upstream\.url: is missing; .*\npassword: is missing; /,
  )
})

it('H103 an odd blank is taken as it is within a text, in quotes and in a comment', () => {
  const file = `${MINIMAL}# a\u00a0comment:\u00a0b\nrealm: Haus\u00a07\nbrowser: {login: "off"} # \u00a0`
  expect(load({ file }).realm).toBe('Haus\u00a07')
  expect(load({ file: `${MINIMAL}realm: "\u00a0x"` }).realm).toBe('\u00a0x')
})

it('H103 brackets without end are refused, and not a stack', () => {
  expect(problemsIn({ file: '['.repeat(100_000) })).toEqual([
    expect.stringMatching(/^postern\.yaml:1: it is nested too deeply \(column \d+\)$/),
  ])
})

it('H103 an object that contains itself is refused, and not a stack', () => {
  const object: Record<string, unknown> = { upstream: { url: 'http://h' }, password: { file: 'x' } }
  object.upstream = object
  expect(() => loadConfig({ object, env: {}, sets: [] })).toThrow(
    'configuration: upstream: contains itself; write the value out without an alias',
  )
})
