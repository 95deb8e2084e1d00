import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { LONG_TESTS, touchedBy } from '../.ci/long-tests.mjs'

const root = join(import.meta.dirname, '..')

it('each long test exists, as does what it watches, and has its reason', () => {
  for (const { tests, because, watches } of LONG_TESTS) {
    expect(because, tests).toMatch(/^[a-z].*[^.]$/)
    expect(tests).toMatch(/^test\/.*(?:\/|\.test\.ts)$/)
    expect([tests, ...watches].filter((path) => !existsSync(join(root, path)))).toEqual([])
  }
})

it('a change touches the long tests that watch it, a change of the long tests themselves those, and one of the packages all', () => {
  const all = LONG_TESTS.map(({ tests }) => tests)
  expect(touchedBy(['docs/api.md'])).toEqual([])
  expect(touchedBy(['deploy/debian/control'])).toContain('test/machine/')
  expect(touchedBy(['test/machine/release.test.ts'])).toEqual(['test/machine/'])
  expect(touchedBy(['docs/api.md', 'package-lock.json'])).toEqual(all)
})
