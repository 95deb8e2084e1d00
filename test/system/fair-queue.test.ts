import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createFairQueue } from '../../src/system/bounded-queue.ts'

it('the fair queue serves owners in turn, and the waiters of each in order of arrival', () => {
  const queue = createFairQueue<string>()
  for (const waiter of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) queue.join(waiter.slice(0, 1), waiter)
  const served = Array.from({ length: 7 }, () => queue.next())
  expect(served).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined])
})

it('the last waiter of the owner with the most makes room for an owner with fewer', () => {
  const queue = createFairQueue<string>()
  for (const waiter of ['a1', 'a2', 'a3', 'b1']) queue.join(waiter.slice(0, 1), waiter)
  expect(queue.makeRoomFor('c')).toBe('a3')
  expect(queue.makeRoomFor('b')).toBeUndefined()
  expect(queue.makeRoomFor('c')).toBe('a2')
  expect(queue.makeRoomFor('c')).toBeUndefined()
  expect(queue.size).toBe(2)
})

it('the nth waiter of an owner waits for at most n waiters of each other owner', () => {
  const arrivals = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 60 })
  fc.assert(
    fc.property(arrivals, (owners) => {
      const queue = createFairQueue<{ owner: string; own: number }>()
      const own = new Map<string, number>()
      for (const owner of owners) {
        const number = own.get(owner) ?? 0
        own.set(owner, number + 1)
        queue.join(owner, { owner, own: number })
      }
      for (let place = 0; place < owners.length; place += 1) {
        const served = queue.next()
        expect(served).toBeDefined()
        if (served !== undefined) expect(place).toBeLessThan((served.own + 1) * own.size)
      }
      expect([queue.size, queue.next()]).toEqual([0, undefined])
    }),
  )
})

it('a waiter that has left is never served, and leaves no empty owner behind', () => {
  const queue = createFairQueue<number>()
  queue.join('a', 1)
  queue.join('a', 2)
  queue.leave('a', 1)
  queue.leave('a', 1)
  queue.leave('b', 2)
  expect([queue.size, queue.next(), queue.next()]).toEqual([1, 2, undefined])
})
