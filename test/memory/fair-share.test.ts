import fc from 'fast-check'
import { expect, it } from 'vitest'
import { fairShare } from '../../src/memory/fair-share.ts'

const clientsOf = (grant?: string) =>
  fc.array(
    fc.integer({ min: 0, max: 1_000 }).map((bytes) => ({ bytes, grant })),
    { maxLength: 20 },
  )

const held = (clients: readonly { readonly bytes: number }[], most: number): number =>
  clients.reduce((sum, { bytes }) => sum + Math.min(bytes, most), 0)

it('H244 the fair shares together fit the memory, and use it up', () => {
  fc.assert(
    fc.property(clientsOf(), fc.integer({ min: 1, max: 10_000 }), (clients, memory) => {
      const { withoutGrant: share } = fairShare(clients, memory, false)
      const all = held(clients, share)
      expect(all).toBeLessThanOrEqual(memory + 1e-6)
      // Unless everything fits, a higher share would not.
      if (clients.reduce((sum, { bytes }) => sum + bytes, 0) > memory)
        expect(all).toBeGreaterThan(memory - 1e-6)
    }),
  )
})

it('H244 a client that holds less than an equal part of the memory keeps all of it', () => {
  fc.assert(
    fc.property(clientsOf(), fc.integer({ min: 1, max: 10_000 }), (clients, memory) => {
      const { withoutGrant: share } = fairShare(clients, memory, false)
      for (const { bytes } of clients)
        if (bytes <= memory / clients.length) expect(bytes).toBeLessThanOrEqual(share + 1e-6)
    }),
  )
})

it('H244 clients with a grant share the memory first, but for a tenth of it', () => {
  fc.assert(
    fc.property(
      clientsOf('g'),
      clientsOf(),
      fc.integer({ min: 1, max: 10_000 }),
      (granted, others, memory) => {
        const share = fairShare([...granted, ...others], memory, true)
        const [first, second] = [held(granted, share.withGrant), held(others, share.withoutGrant)]
        expect(first).toBeLessThanOrEqual(0.9 * memory + 1e-6)
        expect(first + second).toBeLessThanOrEqual(memory + 1e-6)
        if (granted.reduce((sum, { bytes }) => sum + bytes, 0) <= 0.9 * memory)
          for (const { bytes } of granted) expect(bytes).toBeLessThanOrEqual(share.withGrant)
      },
    ),
  )
})
