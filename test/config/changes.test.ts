import { expect, it } from 'vitest'
import { changesBetween } from '../../src/config/changes.ts'
import { knownKeys } from '../../src/config/known-keys.ts'
import { loadConfig } from '../../src/config/load.ts'
import { appliedTo, RESTART_KEYS } from '../../src/config/restart-keys.ts'
import type { Config } from '../../src/config/schema.ts'

function load(...sets: string[]): Config {
  return loadConfig({
    env: {},
    sets: ['upstream.url=http://192.0.2.1', 'password.file=/p', 'upstream.headers.X-A=1', ...sets],
  })
}

/** The changes that a reload applies, and those that wait for a restart. */
function changes(before: Config, after: Config) {
  const applied = appliedTo(before, after)
  return { live: changesBetween(before, applied), restart: changesBetween(applied, after) }
}

it('two equal configurations have no changes', () => {
  expect(changesBetween(load(), load())).toEqual([])
})

it('a change is listed by its key, as live or as waiting for a restart', () => {
  const after = load(
    'limits.api.requests=7',
    'status_codes=http',
    'listen.address=unix:/s',
    'state_dir=/other',
  )
  expect(changes(load(), after)).toEqual({
    live: ['limits.api.requests', 'status_codes'],
    restart: ['listen.address', 'state_dir'],
  })
})

it('an added header takes effect at once', () => {
  expect(changes(load(), load('upstream.headers.X-B=2')).live).toEqual(['upstream.headers.X-B'])
})

it('a key that waits for a restart keeps its value in what is applied, and the others have theirs', () => {
  const applied = appliedTo(load(), load('listen.address=unix:/s', 'realm=other', 'admin.address=off'))
  expect(applied).toEqual(load('realm=other'))
})

it('a key that one of the two leaves out is as in the first', () => {
  const [without, given] = [load(), load('store.tls.ca=/ca')]
  expect(appliedTo(without, given)).toEqual(without)
  expect(appliedTo(given, without)).toEqual(given)
})

it('every key that needs a restart is a key', () => {
  const known = knownKeys().map(({ path }) => path.join('.'))
  expect(known).toEqual(expect.arrayContaining(RESTART_KEYS.flatMap(({ keys }) => keys)))
  expect(RESTART_KEYS.length).toBeLessThan(10)
})
