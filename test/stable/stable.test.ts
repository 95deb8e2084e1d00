import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { PARTS } from './parts.ts'

const FOLDER = 'test/stable/names'

/** The names that the list of a part promises: one a line; `#` begins a comment. */
function listed(part: string): readonly string[] {
  const file = fileURLToPath(new URL(`names/${part}.txt`, import.meta.url))
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
}

/** What is wrong with a part, a sentence for each name. */
function faults(part: string, promised: readonly string[], present: readonly string[]): readonly string[] {
  const file = `${FOLDER}/${part}.txt`
  return [
    ...promised
      .filter((name) => !present.includes(name))
      .map(
        (name) => `"${name}" stays until 2.0 (${file}), and is gone: bring it back, beside what replaces it.`,
      ),
    ...present
      .filter((name) => !promised.includes(name))
      .map((name) => `"${name}" is new: add the line to ${file}, and it stays until 2.0.`),
  ]
}

describe('H338 stays the same until 2.0:', () => {
  it.each(Object.entries(PARTS))('%s', async (part, present) => {
    const names = await present()
    expect(names.length, 'the program has such names').toBeGreaterThan(3)
    expect(faults(part, listed(part), names).join('\n')).toBe('')
  })
})

it('a name that is gone and a name that is new are each a sentence that says what to do', () => {
  expect(faults('flags', ['a', 'b'], ['b', 'c'])).toEqual([
    '"a" stays until 2.0 (test/stable/names/flags.txt), and is gone: bring it back, beside what replaces it.',
    '"c" is new: add the line to test/stable/names/flags.txt, and it stays until 2.0.',
  ])
})
