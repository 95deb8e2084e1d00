import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createFairLine } from '../../src/system/fair-line.ts'

it('the fair line serves owners in turn, and the waiters of each in order of arrival', () => {
  const line = createFairLine<string>()
  for (const waiter of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) line.join(waiter.slice(0, 1), waiter)
  const served = Array.from({ length: 7 }, () => line.next())
  expect(served).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', undefined])
})

it('the last waiter of the owner with the most makes room for an owner with fewer', () => {
  const line = createFairLine<string>()
  for (const waiter of ['a1', 'a2', 'a3', 'b1']) line.join(waiter.slice(0, 1), waiter)
  expect(line.makeRoomFor('c')).toBe('a3')
  expect(line.makeRoomFor('b')).toBeUndefined()
  expect(line.makeRoomFor('c')).toBe('a2')
  expect(line.makeRoomFor('c')).toBeUndefined()
  expect(line.size).toBe(2)
})

it('the nth waiter of an owner waits for at most n waiters of each other owner', () => {
  const arrivals = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 60 })
  fc.assert(
    fc.property(arrivals, (owners) => {
      const line = createFairLine<{ owner: string; own: number }>()
      const own = new Map<string, number>()
      for (const owner of owners) {
        const number = own.get(owner) ?? 0
        own.set(owner, number + 1)
        line.join(owner, { owner, own: number })
      }
      for (let place = 0; place < owners.length; place += 1) {
        const served = line.next()
        expect(served).toBeDefined()
        if (served !== undefined) expect(place).toBeLessThan((served.own + 1) * own.size)
      }
      expect([line.size, line.next()]).toEqual([0, undefined])
    }),
  )
})

it('a waiter that has left is never served, and leaves no empty owner behind', () => {
  const line = createFairLine<number>()
  line.join('a', 1)
  line.join('a', 2)
  line.leave('a', 1)
  line.leave('a', 1)
  line.leave('b', 2)
  expect([line.size, line.next(), line.next()]).toEqual([1, 2, undefined])
})
