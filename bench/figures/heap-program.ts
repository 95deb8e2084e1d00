import process from 'node:process'
import { createClientAddress } from '../../src/gate/client-address.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { systemClock } from '../../src/system/clock.ts'
import type { HeapPoint } from './p8-growth.ts'
import { openTokenStore } from './token-store.ts'

/** The default of `limits.max_keys`. */
const MAX_KEYS = 100_000
const HOUR = 3_600_000

/** Each returns a function that adds entry `i` to a table. */
const growers = {
  tokens(most: number): (i: number) => void {
    const store = openTokenStore(most)
    // One login issues two tokens, and both count.
    return (i) => {
      if (i % 2 === 0) store.issue(addressOf(i), 'password')
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

const [, , what = '', countsText = '[]'] = process.argv
const counts = JSON.parse(countsText) as number[] // of `heapGrowth`
const before = heap()
const grow = growers[what === 'tokens' ? 'tokens' : 'windows'](Math.max(...counts))
const points: HeapPoint[] = []
let entries = 0
for (const count of counts) {
  for (; entries < count; entries += 1) grow(entries)
  points.push([count, heap() - before])
}
process.stdout.write(`${JSON.stringify(points)}\n`)
// Keeps the table reachable until after the last measurement.
grow(entries)

/** The address of client `i`, of up to sixteen million. */
function addressOf(i: number): string {
  return `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
}
