import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { watchFloods } from '../../src/compose/floods.ts'
import type { Logger } from '../../src/record/log.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

const ACCOUNT = { fullness: 0.8, sums: {} as never } // only its figures are logged

function watched() {
  const lines: string[] = []
  const note = (_fields: object, text: string): void => void lines.push(text)
  return { lines, floods: watchFloods({ info: note, warn: note } as unknown as Logger, 1_000) } // it uses no others
}

it('C26 the log tells the end of a flood once, ten seconds after the last stage', () => {
  const { lines, floods } = watched()
  floods.stage('shares', ACCOUNT)
  floods.stage(undefined, ACCOUNT)
  vi.advanceTimersByTime(9_999)
  expect(lines).toHaveLength(1)
  vi.advanceTimersByTime(1)
  expect(lines[1]).toBe('memory: clients hold little again')
  vi.advanceTimersByTime(60_000)
  expect(lines).toHaveLength(2)
})

it('C26 a flood that comes back within ten seconds is the same one', () => {
  const { lines, floods } = watched()
  floods.stage('shares', ACCOUNT)
  floods.stage(undefined, ACCOUNT)
  vi.advanceTimersByTime(9_999)
  floods.stage('shares', ACCOUNT)
  vi.advanceTimersByTime(60_000)
  expect(lines).toHaveLength(1)
  floods.stage(undefined, ACCOUNT)
  vi.advanceTimersByTime(10_000)
  expect(lines).toHaveLength(2)
})
