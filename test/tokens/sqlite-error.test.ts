import { DatabaseSync } from 'node:sqlite'
import { expect, it } from 'vitest'
import { sqliteCode } from '../../src/tokens/state-folder.ts'

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return expect.fail('nothing was thrown')
}

it('a number beyond the range that Postern writes counts as damage', () => {
  const db = new DatabaseSync(':memory:')
  expect(sqliteCode(thrownBy(() => db.prepare('SELECT 9223372036854775807 AS n').get()))).toBe('damaged')
  db.close()
})

it('a bug of Postern is no damage, so it does not set a token file aside', () => {
  const endless = (): number => 1 + endless()
  expect(sqliteCode(thrownBy(endless))).toBe('other')
  expect(sqliteCode(new TypeError('x is not a function'))).toBe('other')
})
