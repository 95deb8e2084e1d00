import process from 'node:process'
import { createClientAddress } from '../../src/gate/client-address.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { systemClock } from '../../src/system/clock.ts'
import { openTokenStore } from '../token-store.ts'
import type { HeapPoint } from './heap.ts'
import { addressOf } from './many-clients.ts'

/** The cap on windows (`limits.max_keys`) as it comes. */
const MAX_KEYS = 100_000
const HOUR = 3_600_000

/** Each has something grow by one at a time, up to a count. */
const growers = {
  tokens(most: number): (i: number) => void {
    const store = openTokenStore(most)
    // A login gives two tokens, which are counted as the two that they are.
    return (i) => {
      if (i % 2 === 0) store.issue(addressOf(i))
    }
  },
  windows(): (i: number) => void {
    const table = createWindowTable({ requests: 60, window: HOUR }, { clock: systemClock, maxKeys: MAX_KEYS })
    const clientOf = createClientAddress([])
    return (i) => {
      table.count(clientOf(addressOf(i), []).key)
    }
  },
}

function heap(): number {
  for (let i = 0; i < 3; i += 1) globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const [, , what = '', given = '[]'] = process.argv
const counts = JSON.parse(given) as number[] // of heap.ts
const before = heap()
const grow = growers[what === 'tokens' ? 'tokens' : 'windows'](Math.max(...counts))
const points: HeapPoint[] = []
let there = 0
for (const count of counts) {
  for (; there < count; there += 1) grow(there)
  points.push([count, heap() - before])
}
process.stdout.write(`${JSON.stringify(points)}\n`)
// So that what grew is still in use when it is measured.
grow(there)
