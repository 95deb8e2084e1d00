import { expect, it } from 'vitest'
import { createLoginAttempts } from '../../src/admin/login-attempts.ts'
import { stillClock } from '../support/clock.ts'

it('H152 a client that is at the limit stays there, however many others come, and new ones share one window', () => {
  const clock = stillClock()
  const begin = createLoginAttempts(clock)
  const failed = (client: string, times: number) =>
    Array.from({ length: times }, () => ('retryAfter' in begin(client) ? 'refused' : 'admitted'))
  failed('192.0.2.1', 10)
  for (let i = 0; i < 5_000; i++) begin(`2001:db8:${i.toString(16)}::1`)
  expect(failed('192.0.2.1', 1)).toEqual(['refused'])
  // The table is full of open windows, and the one for all others is used up.
  expect(failed('198.51.100.1', 1)).toEqual(['refused'])
  expect(failed('2001:db8:1::2', 10).filter((kind) => kind === 'admitted')).toHaveLength(9)
  clock.advance(60_000)
  expect(failed('192.0.2.1', 11).filter((kind) => kind === 'admitted')).toHaveLength(10)
  expect(failed('198.51.100.1', 1)).toEqual(['admitted'])
})
