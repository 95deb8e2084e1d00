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

it('the changelog begins with this version, and each version takes at most 8 kB', () => {
  expect(SECTIONS[0]?.[0]).toBe(VERSION)
  for (const [version, text] of SECTIONS) expect(Buffer.byteLength(text), version).toBeLessThanOrEqual(8000)
})
