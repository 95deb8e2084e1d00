import { expect, it } from 'vitest'
import { VERSION } from '../../src/version.ts'
import { readPage } from '../support/pages.ts'

/** The sections of the versions, the latest first: heading and text. */
const SECTIONS = readPage('CHANGELOG.md')
  .split(/^## /m)
  .slice(1)
  .map((section): readonly [string, string] => {
    const end = section.indexOf('\n')
    return [section.slice(0, end), section.slice(end)]
  })

it('the changelog begins with this version and ends with the first one', () => {
  const versions = SECTIONS.map(([heading]) => heading)
  expect([versions[0], versions.at(-1)]).toEqual([VERSION, '0.1.0'])
})

it('a version takes at most 8 kB, for someone who upgrades: what to do, what comes, what went', () => {
  for (const [version, text] of SECTIONS) expect(Buffer.byteLength(text), version).toBeLessThanOrEqual(8000)
  const [, latest = ''] = SECTIONS.find(([heading]) => heading === '1.0.0') ?? expect.unreachable()
  const themes = ['### What you must do', '### What you get', '### What was removed']
  const places = themes.map((theme) => latest.indexOf(theme))
  expect(places).not.toContain(-1)
  expect(places).toEqual(places.toSorted((a, b) => a - b))
})
