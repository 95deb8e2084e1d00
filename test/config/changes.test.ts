import { expect, it } from 'vitest'
import { changesBetween } from '../../src/config/changes.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'

function load(...sets: string[]): Config {
  return loadConfig({
    env: {},
    sets: ['upstream.url=http://192.0.2.1', 'password.file=/p', 'upstream.headers.X-A=1', ...sets],
  })
}

it('two equal configurations have no changes', () => {
  expect(changesBetween(load(), load())).toEqual({ live: [], restart: [] })
})

it('a change is listed by its key, as live or as waiting for a restart', () => {
  const after = load(
    'limits.api.requests=7',
    'status_codes=http',
    'upstream.url=http://192.0.2.2',
    'limits.max_keys=5',
  )
  expect(changesBetween(load(), after)).toEqual({
    live: ['limits.api.requests', 'status_codes'],
    restart: ['upstream.url', 'limits.max_keys'],
  })
})

it('an added header takes effect at once', () => {
  expect(changesBetween(load(), load('upstream.headers.X-B=2')).live).toEqual(['upstream.headers.X-B'])
})

it('another password source and another address wait for a restart', () => {
  const after = load('password.file=/q', 'listen.address=unix:/s')
  expect(changesBetween(load(), after).live).toEqual([])
  expect(changesBetween(load(), after).restart).toContain('password.file')
})
