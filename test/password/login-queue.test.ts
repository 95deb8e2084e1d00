import { expect, it } from 'vitest'
import { createLoginQueue, type OnEnd } from '../../src/password/login-queue.ts'
import { ALL_EQUAL, type Precedence } from '../../src/password/weighted-turns.ts'
import { stillClock } from '../support/clock.ts'

const FIVE_SECONDS = { least: 5_000, most: 5_000 }

/**
 * A queue whose verifications run two at a time, and result in the password and its place among all that were verified.
 *
 * @param takes how long a verification takes (ms)
 */
function start(
  precedence: Precedence = ALL_EQUAL,
  waiting = 3,
  { takes, wait } = { takes: 1_000, wait: FIVE_SECONDS },
) {
  const clock = stillClock()
  const verified: string[] = []
  const queue = createLoginQueue<string>(clock, { inside: 2, waiting, wait }, precedence, () => 0)
  return {
    verified,
    /** A login, and its result when it has one. */
    logIn(password: string, client = 'client', more: { against?: string; onEnd?: OnEnd } = {}) {
      const login: { result: string | undefined } = { result: undefined }
      const verify = async (): Promise<string> => {
        const place = verified.push(password)
        await clock.pause(takes)
        return `${password} ${place}`
      }
      const job = { client, password, against: more.against ?? '' }
      void queue.enter(job, verify, more.onEnd).then((result) => {
        login.result = result
      })
      return login
    },
    pass: clock.advance,
  }
}

it('H32 fifty equal passwords at once cost three verifications: the two that begin, and one for those that wait', async () => {
  const { logIn, verified, pass } = start()
  const all = Array.from({ length: 50 }, (_, i) => logIn('right', `client ${i}`))
  await pass(2_000)
  expect(verified).toEqual(['right', 'right', 'right'])
  expect(all.map(({ result }) => result)).toEqual(['right 1', 'right 2', ...Array(48).fill('right 3')])
})

it('H32 a verification that has begun is joined by no login', async () => {
  const { logIn, verified, pass } = start()
  logIn('same', 'one')
  logIn('other', 'two')
  await pass(500)
  const late = logIn('same', 'three')
  await pass(500)
  expect([verified, late.result]).toEqual([['same', 'other', 'same'], undefined])
  await pass(1_000)
  expect(late.result).toBe('same 3')
})

it('H32 equal passwords that are compared with other credentials are verified by themselves', async () => {
  const { logIn, verified, pass } = start()
  for (const against of ['1', '1', '1', '2', '1']) logIn('same', 'client', { against })
  await pass(2_000)
  expect(verified).toHaveLength(4)
})

it('H32 each login keeps its own deadline, and one whose request ends leaves only itself', async () => {
  const { logIn, verified, pass } = start(ALL_EQUAL, 20)
  const leaving: (() => void)[] = []
  const onEnd: OnEnd = (listener) => leaving.push(listener)
  // Ten verifications of a second, two at a time, take as long as a login waits.
  for (let i = 0; i < 12; i += 1) logIn(`other ${i}`)
  const early = logIn('common', 'other')
  await pass(1_500)
  const [late, left] = [logIn('common', 'other', { onEnd }), logIn('common', 'other', { onEnd })]
  leaving[1]?.()
  await pass(3_499)
  expect([early, late, left].map(({ result }) => result)).toEqual([undefined, undefined, 'overloaded'])
  leaving[0]?.()
  await pass(1)
  expect([early.result, late.result]).toEqual(['overloaded', 'overloaded'])
  // All have left, so nothing of it is verified.
  await pass(20_000)
  expect(verified).not.toContain('common')
})

it('H32 a login that is late does not end the wait of those that share its verification', async () => {
  const { logIn, pass } = start(ALL_EQUAL, 20)
  for (let i = 0; i < 12; i += 1) logIn(`other ${i}`)
  const early = logIn('common', 'other')
  await pass(4_500)
  const late = logIn('common', 'other')
  await pass(500)
  expect([early.result, late.result]).toEqual(['overloaded', undefined])
  await pass(2_000)
  expect(late.result).toMatch(/^common/)
})

const SLOW_MACHINE = { takes: 6_000, wait: { least: 5_000, most: 30_000 } }

it('H32 where the first verification takes longer than the shortest wait, twenty equal passwords at once all have a result', async () => {
  const { logIn, verified, pass } = start(ALL_EQUAL, 64, SLOW_MACHINE)
  const all = Array.from({ length: 20 }, (_, i) => logIn('right', `client ${i}`))
  await pass(12_000)
  expect(verified).toHaveLength(3)
  expect(all.filter(({ result }) => result?.startsWith('right'))).toHaveLength(20)
})

it('H32 a login waits as long as eight verifications take, by the last one that has ended', async () => {
  const { logIn, pass } = start(ALL_EQUAL, 64, { ...SLOW_MACHINE, takes: 2_000 })
  const all = Array.from({ length: 40 }, (_, i) => logIn(`other ${i}`))
  await pass(15_999)
  expect(all.filter(({ result }) => result === 'overloaded')).toEqual([])
  await pass(1)
  expect(all.filter(({ result }) => result === 'overloaded')).toHaveLength(24)
})

it('H32 no login waits for longer than the longest wait, however slow the machine is', async () => {
  const { logIn, pass } = start(ALL_EQUAL, 64, SLOW_MACHINE)
  const all = Array.from({ length: 40 }, (_, i) => logIn(`other ${i}`))
  await pass(29_999)
  expect(all.filter(({ result }) => result === 'overloaded')).toEqual([])
  await pass(1)
  expect(all.filter(({ result }) => result === 'overloaded').length).toBeGreaterThan(20)
})

it('C26 a shared verification has the best turn of those who share it', async () => {
  const { logIn, verified, pass } = start({ ...ALL_EQUAL, isKnown: (client) => client === 'known' }, 20)
  for (let i = 0; i < 8; i += 1) logIn(`other ${i}`, `client ${i}`)
  const unknown = logIn('common', 'unknown')
  const known = logIn('common', 'known')
  await pass(2_000)
  expect(verified.slice(2, 4)).toContain('common')
  expect(unknown.result).toBe(known.result)
  expect(known.result).toMatch(/^common/)
})

it('C26 in a full queue the one with the smallest share makes room, the latest of them first', async () => {
  const weights = new Map([['guesser', 0.1]])
  const precedence = {
    isKnown: (client: string) => client === 'known',
    weightOf: (address: string) => weights.get(address) ?? 1,
  }
  const { logIn, pass } = start(precedence)
  logIn('runs', 'a')
  logIn('runs, too', 'b')
  const guess = logIn('guess', 'guesser')
  const first = logIn('first', 'one')
  const second = logIn('second', 'two')
  const third = logIn('third', 'three')
  await pass(0)
  expect([guess, first, second, third].map(({ result }) => result)).toEqual([
    'overloaded',
    undefined,
    undefined,
    undefined,
  ])
  const fourth = logIn('fourth', 'four')
  const known = logIn('known', 'known')
  const flood = logIn('flood', 'one')
  await pass(0)
  expect([first, second, third, fourth, known, flood].map(({ result }) => result)).toEqual([
    undefined,
    undefined,
    'overloaded',
    'overloaded',
    undefined,
    'overloaded',
  ])
})

it('H32 a verification that fails rejects for all that share it, and the next one begins', async () => {
  const queue = createLoginQueue<string>(
    stillClock(),
    { inside: 1, waiting: 9, wait: FIVE_SECONDS },
    ALL_EQUAL,
  )
  const broken = async (): Promise<string> => {
    throw new Error('broken')
  }
  const job = { client: 'client', password: 'same', against: '' }
  const all = [1, 2, 3].map(() => queue.enter(job, broken))
  for (const each of await Promise.allSettled(all)) expect(each.status).toBe('rejected')
  expect(await queue.enter(job, async () => 'fine')).toBe('fine')
})

it('C26 a login that finds the queue full looks at a few others, although thousands share one verification', () => {
  let looks = 0
  const precedence: Precedence = {
    isKnown() {
      looks += 1
      return false
    },
    weightOf: (address) => (address.startsWith('2001:') ? 0.01 : 1),
  }
  const { logIn } = start(precedence, 4)
  const crowd = (i: number): string => `2001:db8:1:${i.toString(16)}::/64`
  for (let i = 0; i < 5; i += 1) logIn(`own ${i}`, `192.0.2.${i}`)
  for (let i = 0; i < 2_000; i += 1) logIn('same', crowd(i))
  looks = 0
  logIn('another', crowd(2_000))
  expect(looks).toBeLessThan(20)
})
