import { expect, it } from 'vitest'
import { watchFloods } from '../../src/compose/floods.ts'
import type { Logger } from '../../src/record/log.ts'
import { stillClock } from '../support/clock.ts'

const ACCOUNT = { fullness: 0.8, limit: 1_000, sums: {} as never } // only its figures are logged

function watched() {
  const lines: string[] = []
  const note = (_fields: object, text: string): void => void lines.push(text)
  const clock = stillClock()
  const log = { info: note, warn: note } as unknown as Logger // it uses no others
  return { lines, clock, floods: watchFloods(clock, log) }
}

it('C26 the log tells the end of a flood once, ten seconds after the last stage', async () => {
  const { lines, clock, floods } = watched()
  floods.stage('shares', ACCOUNT)
  floods.stage(undefined, ACCOUNT)
  await clock.advance(9_999)
  expect(lines).toHaveLength(1)
  await clock.advance(1)
  expect(lines[1]).toBe('memory: clients hold little again')
  await clock.advance(60_000)
  expect(lines).toHaveLength(2)
})

it('C26 a flood that comes back within ten seconds is the same one', async () => {
  const { lines, clock, floods } = watched()
  floods.stage('shares', ACCOUNT)
  floods.stage(undefined, ACCOUNT)
  await clock.advance(9_999)
  floods.stage('shares', ACCOUNT)
  await clock.advance(60_000)
  expect(lines).toHaveLength(1)
  floods.stage(undefined, ACCOUNT)
  await clock.advance(10_000)
  expect(lines).toHaveLength(2)
})
