import { expect, it, vi } from 'vitest'
import { nextTurn, turnOfLoop } from '../../src/system/clock.ts'
import { PER_TURN, REQUEST_WORK, TurnBudget } from '../../src/system/turn-budget.ts'

/** How many requests a turn has room for. */
const ROOM = PER_TURN / REQUEST_WORK

/** A request that was served, and in which turn of the event loop. */
interface Served {
  readonly of: string
  readonly number: number
  readonly turn: number
}

/** Sends requests of one client, which are served at once or when their turn comes. */
function send(of: string, count: number, served: Served[], turns = new TurnBudget()): TurnBudget {
  for (let number = 0; number < count; number += 1) {
    const serve = (): void => void served.push({ of, number, turn: turnOfLoop() })
    if (turns.take(REQUEST_WORK)) serve()
    else
      turns.wait(() => {
        turns.spend(REQUEST_WORK)
        serve()
      })
  }
  return turns
}

async function waitFor(count: number, served: readonly Served[]): Promise<void> {
  while (served.length < count) await nextTurn()
}

/** How many were served in each turn, in the order of the turns. */
function perTurn(served: readonly Served[]): number[] {
  const counts = new Map<number, number>()
  for (const each of served) counts.set(each.turn, (counts.get(each.turn) ?? 0) + 1)
  return [...counts.values()]
}

it('a request that is alone in its turn costs no immediate, however many came in turns before it', async () => {
  const immediate = vi.spyOn(globalThis, 'setImmediate')
  const turns = new TurnBudget()
  for (let i = 0; i < 3 * ROOM; i += 1) {
    expect(turns.take(REQUEST_WORK)).toBe(true)
    await nextTurn()
  }
  expect(immediate, 'those of this test').toHaveBeenCalledTimes(3 * ROOM)
  immediate.mockRestore()
})

it('C26 a turn of the event loop does so much for a client; the rest waits for the turns behind it, in order', async () => {
  const served: Served[] = []
  send('a', 10 * ROOM, served)
  // A budget asks which turn this is when it is used up: the first turn may do twice as much.
  expect(served.length).toBe(2 * ROOM)
  await waitFor(10 * ROOM, served)
  expect(perTurn(served)).toEqual([2 * ROOM, ...Array.from({ length: 8 }, () => ROOM)])
  expect(served.map(({ number }) => number)).toEqual(Array.from({ length: 10 * ROOM }, (_, i) => i))
})

it('C26 a client that sends little is served at once, however much of others waits', async () => {
  const served: Served[] = []
  for (let i = 0; i < 50; i += 1) send('flood', 5 * ROOM, served)
  await nextTurn()
  const own: Served[] = []
  const turns = new TurnBudget()
  for (let i = 0; i < 10; i += 1) {
    send('other', 1, own, turns)
    expect(own).toHaveLength(i + 1)
    await nextTurn()
  }
  await waitFor(50 * 5 * ROOM, served)
})

it('C26 clients that wait share each turn equally, whichever of them sends more', async () => {
  const served: Served[] = []
  send('large', 20 * ROOM, served)
  send('small', 5 * ROOM, served)
  await waitFor(25 * ROOM, served)
  const small = served.filter(({ of }) => of === 'small')
  const both = served.filter(({ turn }) => turn > (small[0]?.turn ?? 0) && turn <= (small.at(-1)?.turn ?? 0))
  expect(Math.max(...perTurn(both))).toBe(ROOM)
  expect(both.filter(({ of }) => of === 'large')).toHaveLength(both.length / 2)
})

it('C26 a thousand clients that wait get no more of a turn than one, and each gets its part of the turns', async () => {
  const served: Served[] = []
  for (let i = 0; i < 1000; i += 1) {
    const turns = new TurnBudget()
    turns.spend(2 * PER_TURN)
    turns.take(0)
    turns.spend(PER_TURN)
    send(`${i}`, 3, served, turns)
  }
  await waitFor(3000, served)
  expect(Math.max(...perTurn(served))).toBeLessThanOrEqual(ROOM)
  const last = new Map(served.map(({ of }, i) => [of, i]))
  expect(last.size).toBe(1000)
  expect(new Set(served.slice(0, 1000).map(({ of }) => of)).size).toBe(1000)
})

it('C26 a single piece of work that is larger than a turn is done, and what follows waits', async () => {
  const turns = new TurnBudget()
  turns.spend(20 * PER_TURN)
  expect(turns.take(REQUEST_WORK), 'the work may be of an earlier turn').toBe(true)
  turns.spend(20 * PER_TURN)
  expect(turns.take(REQUEST_WORK)).toBe(false)
  await new Promise<void>((resolve) => turns.wait(resolve))
})
