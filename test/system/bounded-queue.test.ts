import fc from 'fast-check'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import {
  type BoundedQueue,
  createBoundedQueue,
  type Entry,
  type Leave,
} from '../../src/system/bounded-queue.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { stillClock } from '../support/clock.ts'

let clock = stillClock()
beforeEach(() => {
  clock = stillClock()
})

/** Runs the callbacks of promises that are settled. */
const settled = nextTurn

function entered(entry: Entry): Leave {
  return entry.kind === 'entered' ? entry.leave : expect.fail(`the result was ${entry.kind}`)
}

function counts(queue: BoundedQueue): [number, number] {
  return [queue.inside, queue.waiting]
}

describe('createBoundedQueue', () => {
  it('admits as many as fit, and refuses at once if the line is full', async () => {
    const queue = createBoundedQueue(clock, { inside: 1, waiting: 1, maxWait: 1000 })
    expect(queue.tryEnter()).toBeTypeOf('function')
    expect(queue.tryEnter()).toBeUndefined()
    void queue.enter()
    expect(await queue.enter()).toEqual({ kind: 'full' })
    expect(counts(queue)).toEqual([1, 1])
  })

  it('tells of each caller that found no free place, how long it waited, and how that ended', async () => {
    const told: [number, string][] = []
    const onWaited = (time: number, end: string): void => void told.push([time, end])
    const queue = createBoundedQueue(clock, { inside: 1, waiting: 2, maxWait: 1000, onWaited })
    const leave = entered(await queue.enter('a'))
    expect([told, queue.entered]).toEqual([[], 1])
    void queue.enter('a')
    void queue.enter('a')
    void queue.enter('a')
    await settled()
    expect(told).toEqual([[0, 'full']])
    await clock.advance(10)
    void queue.enter('b')
    await settled()
    expect(told.at(-1)).toEqual([10, 'full'])
    leave()
    await settled()
    expect([told.at(-1), queue.entered]).toEqual([[10, 'entered'], 2])
    await clock.advance(1_000)
    expect(told.slice(3)).toEqual([[1_000, 'late']])
    void queue.enter('c', (withdraw) => clock.after(7, withdraw))
    await clock.advance(7)
    expect([told.slice(4), queue.entered]).toEqual([[[7, 'withdrawn']], 2])
  })

  it('serves waiters in order of arrival', async () => {
    const queue = createBoundedQueue(clock, { inside: 1, waiting: 3, maxWait: 1000 })
    let leave = queue.tryEnter() ?? expect.fail('the queue was empty')
    const order: number[] = []
    const entries = [1, 2, 3].map(async (number) => {
      const entry = await queue.enter()
      order.push(number)
      return entered(entry)
    })
    for (const entry of entries) {
      leave()
      leave = await entry
    }
    expect(order).toEqual([1, 2, 3])
  })

  it('gives a waiter up at the millisecond at which its wait ends', async () => {
    const queue = createBoundedQueue(clock, { inside: 1, waiting: 1, maxWait: 1000 })
    queue.tryEnter()
    const settle = vi.fn()
    void queue.enter().then(settle)
    await clock.advance(999)
    expect(settle).not.toHaveBeenCalled()
    await clock.advance(1)
    expect(settle).toHaveBeenCalledWith({ kind: 'late' })
    expect(counts(queue)).toEqual([1, 0])
  })

  it('C25 gives no waiter up whose owner gets places, one after the other', async () => {
    const queue = createBoundedQueue(clock, { inside: 1, waiting: 9, maxWait: 1000 })
    let leave = queue.tryEnter('served')
    const waits = Array.from({ length: 5 }, () => queue.enter('served'))
    const other = queue.enter('other')
    for (const wait of waits) {
      await clock.advance(999)
      leave?.()
      leave = entered(await wait)
    }
    expect(await other).toEqual({ kind: 'late' })
    const settle = vi.fn()
    void queue.enter('served').then(settle)
    await clock.advance(999)
    expect(settle).not.toHaveBeenCalled()
    await clock.advance(1)
    expect(settle).toHaveBeenCalledWith({ kind: 'late' })
  })

  it('leaves no timer of a waiter that has entered or withdrawn', async () => {
    const queue = createBoundedQueue(clock, { inside: 1, waiting: 2, maxWait: 1000 })
    const leave = queue.tryEnter()
    let withdraw = (): void => {}
    void queue.enter()
    void queue.enter('', (way) => {
      withdraw = way
    })
    expect(clock.pending).toBe(2)
    leave?.()
    withdraw()
    expect(clock.pending).toBe(0)
  })

  it('keeps no place for a waiter that withdraws as soon as it must wait', async () => {
    const queue = createBoundedQueue(clock, { inside: 1, waiting: 1, maxWait: 1000 })
    queue.tryEnter()
    expect(await queue.enter('', (withdraw) => withdraw())).toEqual({ kind: 'withdrawn' })
    expect(counts(queue)).toEqual([1, 0])
    expect(clock.pending).toBe(0)
  })

  it('ignores a withdrawal after the entry', async () => {
    const queue = createBoundedQueue(clock, { inside: 1, waiting: 1, maxWait: 1000 })
    const leave = queue.tryEnter()
    let withdraw = (): void => {}
    const entry = queue.enter('', (way) => {
      withdraw = way
    })
    leave?.()
    withdraw()
    expect(await entry).toMatchObject({ kind: 'entered' })
    expect(counts(queue)).toEqual([1, 0])
  })

  it('frees a place once, even if `leave` is called again', () => {
    const queue = createBoundedQueue(clock, { inside: 2, waiting: 0, maxWait: 1000 })
    const leave = queue.tryEnter()
    queue.tryEnter()
    leave?.()
    leave?.()
    expect(queue.inside).toBe(1)
  })

  it('waits for a day at least if `maxWait` is infinite', async () => {
    const queue = createBoundedQueue(clock, {
      inside: 1,
      waiting: 1,
      maxWait: Number.POSITIVE_INFINITY,
    })
    queue.tryEnter()
    void queue.enter()
    await clock.advance(86_400_000)
    expect(queue.waiting).toBe(1)
  })
})

describe('C25 Callers that stay long', () => {
  const long = (queue: BoundedQueue) => queue.tryEnter('a', true)

  it('get at most half of the places, and one of a single one; the others get the rest', async () => {
    const queue = createBoundedQueue(clock, { inside: 4, waiting: 9, maxWait: 5_000 })
    const leaves = [long(queue), long(queue)]
    expect(long(queue)).toBeUndefined()
    const third = vi.fn()
    void queue.enter('a', undefined, true).then(third)
    for (let i = 0; i < 12; i += 1) {
      const [one, two] = [queue.tryEnter('b'), queue.tryEnter('b')]
      expect([one, two, queue.tryEnter('b')]).toEqual([expect.any(Function), expect.any(Function), undefined])
      await clock.advance(300)
      one?.()
      two?.()
    }
    expect([third.mock.calls, queue.inside]).toEqual([[], 2])
    leaves[0]?.()
    await settled()
    expect(third).toHaveBeenCalledWith({ kind: 'entered', leave: expect.any(Function) })
    expect(long(createBoundedQueue(clock, { inside: 1, waiting: 0, maxWait: 1 }))).toBeDefined()
  })

  it('get all places when no others have come for two seconds, until the next comes', async () => {
    const queue = createBoundedQueue(clock, { inside: 4, waiting: 9, maxWait: 5_000 })
    const waits = Array.from({ length: 4 }, () => queue.enter('a', undefined, true))
    await clock.advance(1_999)
    expect(counts(queue)).toEqual([2, 2])
    await clock.advance(1)
    expect(counts(queue)).toEqual([4, 0])
    const all = (await Promise.all(waits)).map(entered)
    const other = queue.enter('b')
    for (const leave of all.slice(0, 3)) leave()
    entered(await other)()
    expect([long(queue), long(queue)]).toEqual([expect.any(Function), undefined])
  })

  it('do not get all places while one of the others waits, nor as soon as it has got its place', async () => {
    const inside = { places: 1 }
    const queue = createBoundedQueue(clock, { inside, waiting: 9, maxWait: 5_000 })
    long(queue)
    const other = queue.enter('b')
    for (let i = 0; i < 3; i += 1) void queue.enter('a', undefined, true)
    await clock.advance(3_500)
    inside.places = 4
    queue.fill()
    const leave = entered(await other)
    await clock.advance(1_000)
    leave()
    expect(counts(queue)).toEqual([2, 2])
    expect(queue.tryEnter('c')).toBeDefined()
  })

  it('are not passed over: below their half, they go first', async () => {
    const queue = createBoundedQueue(clock, { inside: 2, waiting: 9, maxWait: 5_000 })
    const leave = queue.tryEnter('b')
    queue.tryEnter('b')
    const order: string[] = []
    void queue.enter('b').then(() => order.push('other'))
    void queue.enter('a', undefined, true).then(() => order.push('long'))
    leave?.()
    await settled()
    expect(order).toEqual(['long'])
  })

  it('take turns with the others at a single place, one for a round of all other owners', async () => {
    const queue = createBoundedQueue(clock, { inside: 1, waiting: 9, maxWait: 5_000 })
    let leave = long(queue)
    const order: string[] = []
    const enter = (owner: string, isLong: boolean) =>
      void queue.enter(owner, undefined, isLong).then((entry) => {
        order.push(owner)
        leave = entered(entry)
      })
    for (let i = 0; i < 3; i += 1) enter('long', true)
    for (const owner of ['b', 'c', 'b', 'c', 'b', 'c']) enter(owner, false)
    for (let i = 0; i < 6; i += 1) {
      leave?.()
      await settled()
    }
    expect(order).toEqual(['b', 'c', 'long', 'b', 'c', 'long'])
  })

  it('are displaced from a full line only if their owner has more waiters than the new one, of both kinds', async () => {
    const queue = createBoundedQueue(clock, { inside: 1, waiting: 6, maxWait: 5_000 })
    queue.tryEnter('x')
    const ends: string[] = []
    const enter = (owner: string, isLong: boolean) =>
      void queue.enter(owner, undefined, isLong).then(({ kind }) => ends.push(`${owner} ${kind}`))
    for (let i = 0; i < 2; i += 1) enter('polls', true)
    for (let i = 0; i < 5; i += 1) enter('floods', false)
    await settled()
    expect(ends).toEqual(['floods full'])
    enter('floods', true)
    enter('other', false)
    await settled()
    expect(ends).toEqual(['floods full', 'floods full', 'floods full'])
  })
})

type Step = readonly ['try' | 'enter' | 'leave' | 'withdraw' | 'pass', number]

/** A naive queue as reference. */
function createModel(bounds: { inside: number; waiting: number; maxWait: number }) {
  const results = new Map<number, string>()
  let now = 0
  let inside: number[] = []
  let line: { id: number; until: number }[] = []
  return {
    results,
    inside: () => inside.length,
    waiting: () => line.length,
    ask(id: number, mayWait: boolean) {
      if (inside.length < bounds.inside) {
        inside.push(id)
        results.set(id, 'entered')
      } else if (mayWait && line.length < bounds.waiting) line.push({ id, until: now + bounds.maxWait })
      else results.set(id, mayWait ? 'full' : 'none')
    },
    leave(id: number) {
      if (!inside.includes(id)) return
      inside = inside.filter((other) => other !== id)
      const next = line.shift()
      if (next === undefined) return
      inside.push(next.id)
      results.set(next.id, 'entered')
      // All have the same owner, which was served.
      for (const waiter of line) waiter.until = now + bounds.maxWait
    },
    withdraw(id: number) {
      if (!line.some((waiter) => waiter.id === id)) return
      line = line.filter((waiter) => waiter.id !== id)
      results.set(id, 'withdrawn')
    },
    pass(ms: number) {
      now += ms
      for (const waiter of line) if (waiter.until <= now) results.set(waiter.id, 'late')
      line = line.filter((waiter) => waiter.until > now)
    },
  }
}

describe('createBoundedQueue against a naive model', () => {
  it('has the same results and counts for any sequence of entries, departures, withdrawals and waits', async () => {
    const step = fc.tuple(
      fc.constantFrom<Step[0]>('try', 'enter', 'enter', 'enter', 'leave', 'leave', 'withdraw', 'pass'),
      fc.nat(40),
    )
    const bounds = fc.record({
      inside: fc.integer({ min: 1, max: 3 }),
      waiting: fc.integer({ min: 0, max: 4 }),
      maxWait: fc.integer({ min: 1, max: 60 }),
    })
    await fc.assert(
      fc.asyncProperty(bounds, fc.array(step, { maxLength: 60 }), async (limits, steps) => {
        const queue = createBoundedQueue(clock, limits)
        const model = createModel(limits)
        const results = new Map<number, string>()
        const leaves = new Map<number, Leave>()
        const withdrawals: (() => void)[] = []
        const settle = (id: number, entry: Entry): void => {
          results.set(id, entry.kind)
          if (entry.kind === 'entered') leaves.set(id, entry.leave)
        }
        for (const [kind, number] of steps) {
          const id = withdrawals.length
          const picked = id === 0 ? 0 : number % id
          if (kind === 'try') {
            withdrawals.push(() => {})
            const leave = queue.tryEnter()
            if (leave === undefined) results.set(id, 'none')
            else settle(id, { kind: 'entered', leave })
            model.ask(id, false)
          } else if (kind === 'enter') {
            withdrawals.push(() => {})
            const onWait = (withdraw: () => void): void => {
              withdrawals[id] = withdraw
            }
            void queue.enter('', onWait).then((entry) => settle(id, entry))
            model.ask(id, true)
          } else if (kind === 'leave') {
            leaves.get(picked)?.()
            model.leave(picked)
          } else if (kind === 'withdraw') {
            withdrawals[picked]?.()
            model.withdraw(picked)
          } else {
            await clock.advance(number)
            model.pass(number)
          }
          await settled()
          expect(counts(queue)).toEqual([model.inside(), model.waiting()])
          expect(results).toEqual(model.results)
        }
      }),
      { numRuns: 300 },
    )
  })
})

it('C25 a queue that takes the place of another counts what is inside there, and its waiters go behind those there', async () => {
  const clock = stillClock()
  const old = createBoundedQueue(clock, { inside: 2, waiting: 9, maxWait: 1000 })
  const [one, two] = [old.tryEnter(), old.tryEnter()]
  const entered: string[] = []
  void old.enter().then(() => entered.push('old'))
  const next = createBoundedQueue(clock, { inside: 2, waiting: 9, maxWait: 1000 }, old)
  old.passOn(next)
  expect([next.tryEnter(), next.inside]).toEqual([undefined, 2])
  void next.enter().then(() => entered.push('next'))
  one?.()
  await clock.advance(0)
  expect(entered).toEqual(['old'])
  two?.()
  await clock.advance(0)
  expect([entered, next.inside]).toEqual([['old', 'next'], 2])
})

it('C25 a place that is left passes to the queue that has waited longest, over several queues in turn', async () => {
  const clock = stillClock()
  const bounds = { inside: 2, waiting: 9, maxWait: 1000 }
  const first = createBoundedQueue(clock, bounds)
  const leaves = [first.tryEnter(), first.tryEnter()]
  const entered: string[] = []
  let last = first
  for (const name of ['second', 'third', 'fourth']) {
    const next = createBoundedQueue(clock, bounds, last)
    last.passOn(next)
    void next.enter().then((entry) => {
      entered.push(name)
      if (entry.kind === 'entered') leaves.push(entry.leave)
    })
    last = next
  }
  for (const expected of [['second'], ['second', 'third'], ['second', 'third', 'fourth']]) {
    leaves.shift()?.()
    await clock.advance(0)
    expect(entered).toEqual(expected)
    expect(last.inside).toBe(2)
  }
  leaves.shift()?.()
  leaves.shift()?.()
  expect(last.inside).toBe(0)
})
