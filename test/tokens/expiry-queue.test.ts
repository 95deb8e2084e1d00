import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createExpiryQueue } from '../../src/tokens/expiry-queue.ts'

interface Entry {
  expiresAt: number
  removed: boolean
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('push' as const), value: fc.nat(50) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('remove' as const), value: fc.nat(1_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('retime' as const), value: fc.nat(1_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('take' as const), value: fc.nat(5) }) },
)

it('C7 the queue gives each entry that has expired once, the earliest first, and none that was removed', () => {
  fc.assert(
    fc.property(fc.array(step, { size: 'max', maxLength: 600 }), (steps) => {
      const queue = createExpiryQueue<Entry>()
      let held: Entry[] = []
      let now = 0
      /** Takes all that have expired, and compares them with a list. */
      const take = (until: number): void => {
        now = until
        const expected = held.filter(({ expiresAt }) => expiresAt <= now).map(({ expiresAt }) => expiresAt)
        held = held.filter(({ expiresAt }) => expiresAt > now)
        const taken: Entry[] = []
        for (let entry = queue.take(now); entry !== undefined; entry = queue.take(now)) taken.push(entry)
        expect(taken.map(({ expiresAt }) => expiresAt)).toEqual(expected.sort((a, b) => a - b))
        expect(taken.filter(({ removed }) => removed)).toEqual([])
      }
      for (const { kind, value } of steps) {
        const entry = held[value % Math.max(1, held.length)]
        if (kind === 'push') {
          const added = { expiresAt: now + value, removed: false }
          held.push(added)
          queue.push(added)
        } else if (kind === 'take') take(now + value)
        else if (entry !== undefined && kind === 'remove') {
          held.splice(held.indexOf(entry), 1)
          entry.removed = true
          queue.discard()
        } else if (entry !== undefined) {
          entry.expiresAt = now + (value % 60)
          queue.reorder()
        }
      }
      take(Number.POSITIVE_INFINITY)
    }),
    { numRuns: 60 },
  )
})

it('C7 removed entries leave the queue when they are half of it, so that a flood of logins and revocations holds nothing', () => {
  const queue = createExpiryQueue<Entry>()
  let looked = 0
  const entries = Array.from({ length: 128 }, (_, i) => ({
    expiresAt: i,
    isRemoved: false,
    get removed() {
      looked += 1
      return this.isRemoved
    },
    set removed(removed: boolean) {
      this.isRemoved = removed
    },
  }))
  for (const entry of entries) queue.push(entry)
  for (const entry of entries.slice(0, 64)) {
    entry.removed = true
    queue.discard()
  }
  looked = 0
  // The first that is left is at the top: no removed one is looked at.
  expect(queue.take(200)?.expiresAt).toBe(64)
  expect(looked).toBeLessThanOrEqual(2)
})
