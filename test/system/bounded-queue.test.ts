import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  type BoundedQueue,
  createBoundedQueue,
  type Entry,
  type Leave,
} from '../../src/system/bounded-queue.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Lets promises that are already settled tell their readers. */
async function told(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0)
}

function entered(entry: Entry): Leave {
  return entry.kind === 'entered' ? entry.leave : expect.fail(`the answer was ${entry.kind}`)
}

function counts(queue: BoundedQueue): [number, number] {
  return [queue.inside, queue.waiting]
}

describe('createBoundedQueue', () => {
  it('lets in as many as fit, and says at once when even the line is full', async () => {
    const queue = createBoundedQueue({ inside: 1, waiting: 1, patience: 1000 })
    expect(queue.tryEnter()).toBeTypeOf('function')
    expect(queue.tryEnter()).toBeUndefined()
    void queue.enter()
    expect(await queue.enter()).toEqual({ kind: 'full' })
    expect(counts(queue)).toEqual([1, 1])
  })

  it('serves those who wait in the order in which they came', async () => {
    const queue = createBoundedQueue({ inside: 1, waiting: 3, patience: 1000 })
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

  it('gives up for a waiter after its patience, not a millisecond before', async () => {
    const queue = createBoundedQueue({ inside: 1, waiting: 1, patience: 1000 })
    queue.tryEnter()
    const answer = vi.fn()
    void queue.enter().then(answer)
    await vi.advanceTimersByTimeAsync(999)
    expect(answer).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(answer).toHaveBeenCalledWith({ kind: 'late' })
    expect(counts(queue)).toEqual([1, 0])
  })

  it('leaves no timer behind a waiter who was let in or has withdrawn', async () => {
    const queue = createBoundedQueue({ inside: 1, waiting: 2, patience: 1000 })
    const leave = queue.tryEnter()
    let withdraw = (): void => {}
    void queue.enter()
    void queue.enter('', (way) => {
      withdraw = way
    })
    expect(vi.getTimerCount()).toBe(2)
    leave?.()
    withdraw()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('keeps no place in line for one who withdraws as soon as he has to wait', async () => {
    const queue = createBoundedQueue({ inside: 1, waiting: 1, patience: 1000 })
    queue.tryEnter()
    expect(await queue.enter('', (withdraw) => withdraw())).toEqual({ kind: 'withdrawn' })
    expect(counts(queue)).toEqual([1, 0])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('takes nothing back from one who was let in and withdraws then', async () => {
    const queue = createBoundedQueue({ inside: 1, waiting: 1, patience: 1000 })
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

  it('a place is given back once, however often one leaves', () => {
    const queue = createBoundedQueue({ inside: 2, waiting: 0, patience: 1000 })
    const leave = queue.tryEnter()
    queue.tryEnter()
    leave?.()
    leave?.()
    expect(queue.inside).toBe(1)
  })

  it('waits as long as a timer can where patience is endless', async () => {
    const queue = createBoundedQueue({ inside: 1, waiting: 1, patience: Number.POSITIVE_INFINITY })
    queue.tryEnter()
    void queue.enter()
    await vi.advanceTimersByTimeAsync(86_400_000)
    expect(queue.waiting).toBe(1)
  })
})

type Step = readonly ['try' | 'enter' | 'leave' | 'withdraw' | 'pass', number]

/** What the queue promises, written the slow and obvious way. */
function createModel(bounds: { inside: number; waiting: number; patience: number }) {
  const answers = new Map<number, string>()
  let now = 0
  let inside: number[] = []
  let line: { id: number; until: number }[] = []
  return {
    answers,
    inside: () => inside.length,
    waiting: () => line.length,
    ask(id: number, mayWait: boolean) {
      if (inside.length < bounds.inside) {
        inside.push(id)
        answers.set(id, 'entered')
      } else if (mayWait && line.length < bounds.waiting) line.push({ id, until: now + bounds.patience })
      else answers.set(id, mayWait ? 'full' : 'none')
    },
    leave(id: number) {
      if (!inside.includes(id)) return
      inside = inside.filter((other) => other !== id)
      const next = line.shift()
      if (next === undefined) return
      inside.push(next.id)
      answers.set(next.id, 'entered')
    },
    withdraw(id: number) {
      if (!line.some((waiter) => waiter.id === id)) return
      line = line.filter((waiter) => waiter.id !== id)
      answers.set(id, 'withdrawn')
    },
    pass(ms: number) {
      now += ms
      for (const waiter of line) if (waiter.until <= now) answers.set(waiter.id, 'late')
      line = line.filter((waiter) => waiter.until > now)
    },
  }
}

describe('createBoundedQueue against a naive model', () => {
  it('gives the same answers and counts to any run of arrivals, departures, withdrawals and time', async () => {
    const step = fc.tuple(
      fc.constantFrom<Step[0]>('try', 'enter', 'enter', 'enter', 'leave', 'leave', 'withdraw', 'pass'),
      fc.nat(40),
    )
    const bounds = fc.record({
      inside: fc.integer({ min: 1, max: 3 }),
      waiting: fc.integer({ min: 0, max: 4 }),
      patience: fc.integer({ min: 1, max: 60 }),
    })
    await fc.assert(
      fc.asyncProperty(bounds, fc.array(step, { maxLength: 60 }), async (limits, steps) => {
        const queue = createBoundedQueue(limits)
        const model = createModel(limits)
        const answers = new Map<number, string>()
        const leaves = new Map<number, Leave>()
        const withdrawals: (() => void)[] = []
        const answered = (id: number, entry: Entry): void => {
          answers.set(id, entry.kind)
          if (entry.kind === 'entered') leaves.set(id, entry.leave)
        }
        for (const [kind, number] of steps) {
          const id = withdrawals.length
          const someone = id === 0 ? 0 : number % id
          if (kind === 'try') {
            withdrawals.push(() => {})
            const leave = queue.tryEnter()
            if (leave === undefined) answers.set(id, 'none')
            else answered(id, { kind: 'entered', leave })
            model.ask(id, false)
          } else if (kind === 'enter') {
            withdrawals.push(() => {})
            const onWait = (withdraw: () => void): void => {
              withdrawals[id] = withdraw
            }
            void queue.enter('', onWait).then((entry) => answered(id, entry))
            model.ask(id, true)
          } else if (kind === 'leave') {
            leaves.get(someone)?.()
            model.leave(someone)
          } else if (kind === 'withdraw') {
            withdrawals[someone]?.()
            model.withdraw(someone)
          } else {
            await vi.advanceTimersByTimeAsync(number)
            model.pass(number)
          }
          await told()
          expect(counts(queue)).toEqual([model.inside(), model.waiting()])
          expect(answers).toEqual(model.answers)
        }
        vi.clearAllTimers()
      }),
      { numRuns: 300 },
    )
  })
})
