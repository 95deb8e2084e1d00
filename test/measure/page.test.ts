import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { LOWERS, RAISES, STATES } from '../../src/forward/places-law.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/measure.md'), 'utf8')

/** The reasons in the first column of a table, in their order. */
function reasonsUnder(heading: string): string[] {
  const [, , rows = ''] = page.split(new RegExp(`^(\\| ${heading} \\|.*)$`, 'm'))
  const [table = ''] = rows.split('\n\n')
  return [...table.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, reason = '']) => reason)
}

it.each([
  { heading: 'what raises it', reasons: RAISES },
  { heading: 'what lowers it', reasons: LOWERS },
])('H198 the page lists $heading, as the code does: $reasons', ({ heading, reasons }) => {
  expect(reasonsUnder(heading)).toEqual(reasons)
})

it('H198 the page has a column for each state of the law, in its order', () => {
  const [, heading = ''] = /^\| what happens \|(.*)$/m.exec(page) ?? []
  expect([...heading.matchAll(/ `(\w+)`:/g)].map(([, state]) => state)).toEqual(STATES)
})
