import { expect, it } from 'vitest'
import { createSessionTable } from '../../src/browser/session-table.ts'
import { stillClock } from '../support/clock.ts'

/** A table in which a session is over after 1000 ms without use. */
function table(several: 'none-counts' | 'each-is-tried' = 'each-is-tried') {
  const clock = stillClock()
  const ended: string[] = []
  const streaming = new Set<string>()
  const sessions = createSessionTable<string>({
    clock,
    cookie: { name: 'sid', secure: true, several },
    most: 10,
    idle: () => 1_000,
    lifetime: () => 100_000,
    inFlight: () => (login) => streaming.has(login),
    onEnd(some) {
      ended.push(...some.map(({ login }) => login))
      return true
    },
  })
  const begin = (login: string): string => sessions.begin(login).split(';', 1)[0] ?? ''
  return { clock, sessions, ended, streaming, begin, idOf: (cookie: string) => cookie.slice('sid='.length) }
}

it('of several sessions in the cookies of a request, only the one that is returned is used', async () => {
  const { clock, sessions, ended, begin } = table()
  const [first, second] = [begin('first'), begin('second')]
  await clock.advance(999)
  expect(sessions.carriedBy(['Cookie', `sid=unknown; ${first}; ${second}`])?.login).toBe('first')
  await clock.advance(1)
  sessions.sweep()
  expect(ended).toEqual(['second'])
})

it('a request that came earlier than the last use of its session does not set that use back', async () => {
  const { clock, sessions, ended, begin, idOf } = table()
  const id = idOf(begin('used'))
  const early = clock.monotonic()
  await clock.advance(900)
  sessions.find(id)
  sessions.find(id, early)
  await clock.advance(999)
  sessions.sweep()
  expect(ended).toEqual([])
  await clock.advance(1)
  sessions.sweep()
  expect(ended).toEqual(['used'])
})

it('a sweep that an early request causes does not set back the use of sessions in flight', async () => {
  const { clock, sessions, ended, streaming, begin, idOf } = table()
  const over = idOf(begin('over'))
  begin('streaming')
  streaming.add('streaming')
  await clock.advance(1_000)
  const early = clock.monotonic()
  await clock.advance(900)
  expect(sessions.find(over, early)).toBe(undefined)
  streaming.clear()
  await clock.advance(999)
  sessions.sweep()
  expect(ended).toEqual(['over'])
})

it('a logout ends every session in the cookies of a request, also where several cookies are no login', async () => {
  const { sessions, ended, begin } = table('none-counts')
  const [first, second, other] = [begin('first'), begin('second'), begin('other')]
  await sessions.endCarriedBy(['Cookie', `${first}; ${first}; sid=unknown`, 'Cookie', second])
  expect(ended).toEqual(['first', 'second'])
  expect(sessions.carriedBy(['Cookie', other])?.login).toBe('other')
})
