import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { watchFloods } from '../../src/compose/floods.ts'
import type { Logger } from '../../src/record/log.ts'
import { systemClock } from '../../src/system/clock.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const ACCOUNT = { fullness: 0.8, sums: {} as never } // only its figures are logged

function watched() {
  const lines: string[] = []
  const note = (_fields: object, text: string): void => void lines.push(text)
  return { lines, floods: watchFloods(systemClock, { info: note, warn: note } as unknown as Logger, 1_000) } // it uses no others
}

it('C26 the log and the collection learn the end of a flood together, once, ten seconds after the last stage', () => {
  const { lines, floods } = watched()
  floods.stage('shares', ACCOUNT)
  floods.stage(undefined, ACCOUNT)
  vi.advanceTimersByTime(9_999)
  expect([lines.length, floods.takeEnd()]).toEqual([1, false])
  vi.advanceTimersByTime(1)
  expect(lines[1]).toBe('memory: clients hold little again')
  expect([floods.takeEnd(), floods.takeEnd()]).toEqual([true, false])
})

it('C26 a flood that comes back within ten seconds is the same one', () => {
  const { lines, floods } = watched()
  floods.stage('shares', ACCOUNT)
  floods.stage(undefined, ACCOUNT)
  vi.advanceTimersByTime(9_999)
  floods.stage('shares', ACCOUNT)
  vi.advanceTimersByTime(60_000)
  expect([lines.length, floods.takeEnd()]).toEqual([1, false])
  floods.stage(undefined, ACCOUNT)
  vi.advanceTimersByTime(10_000)
  expect([lines.length, floods.takeEnd()]).toEqual([2, true])
})
