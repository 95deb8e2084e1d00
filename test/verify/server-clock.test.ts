import fc from 'fast-check'
import { expect, it } from 'vitest'
import { foldFields } from '../../src/verify/exchange.ts'
import { ServerClock } from '../../src/verify/server.ts'
import { stillClock } from '../support/clock.ts'

const answer = (at: number, date: string | undefined) => ({
  status: 200,
  fields: foldFields({ date }),
  body: '',
  at,
  sentAt: at - 10,
  ms: 10,
  failure: undefined,
})

it('H127 a clock that is more than 2 s off is taken from the first Date, and a closer one is ours', () => {
  fc.assert(
    fc.property(fc.integer({ min: -10_000_000, max: 10_000_000 }), (off) => {
      const ours = stillClock()
      const clock = new ServerClock(ours)
      const now = Math.floor(ours.wall() / 1000) * 1000
      const date = new Date(now + off * 1000).toUTCString()
      const ahead = clock.read(answer(now, date))
      expect(ahead).toBe(off >= 2 || off <= -4 ? off * 1000 : undefined)
      expect(clock.wall() - ours.wall()).toBe(ahead ?? 0)
      const { sentAt, at } = clock.corrected(answer(now, undefined))
      expect([sentAt, at]).toEqual([now - 10 + (ahead ?? 0), ahead === undefined ? now : now + ahead + 1000])
      expect(clock.read(answer(now, new Date(now).toUTCString()))).toBeUndefined()
    }),
  )
})
