import process from 'node:process'
import { createClientAddress } from '../../src/gate/client-address.ts'
import { createWindowTable } from '../../src/limits/window-table.ts'
import { systemClock } from '../../src/system/clock.ts'
import type { Now } from '../../src/tokens/backend.ts'
import { createGrantTable } from '../../src/tokens/grant-table.ts'
import { createMemoryBackend } from '../../src/tokens/memory-backend.ts'
import { createTokenStore, type TokenStore } from '../../src/tokens/token-store.ts'
import { liveRequests } from '../../test/tokens/live-requests.ts'
import { runIfMain, runModule } from '../child.ts'
import type { Table } from '../figure.ts'
import { fixed } from '../format.ts'
import type { Figure } from '../lab.ts'
import { checkOf } from '../measure.ts'

const TOKENS = 100_000

/** The default of `limits.max_keys`, and ten times as many clients. */
const WINDOWS = 100_000
const CLIENTS = 1_000_000

/** Allowed growth past the cap: shows that the table does not grow with the clients, and allows noise of the heap. */
const FLAT = 1.02

const HOUR = 3_600_000

/** Milliseconds. */
const TIMEOUT = 120_000

export const growthOfTables: Figure = {
  id: 'P8',
  title: 'Memory of tokens and windows',
  about:
    'The heap of a process that holds only the token store of the sidecar, or only its window table, after garbage collection. Each window belongs to one client; past 100,000 of them (`limits.max_keys`) new clients share one.',
  async measure(lab) {
    const grown = async (what: Plan['what'], counts: readonly number[]): Promise<Map<number, number>> => {
      const options = { core: lab.proxyCore, timeout: TIMEOUT, flags: ['--expose-gc'] }
      return new Map(await runModule<HeapPoint[]>(import.meta.url, { what, counts }, options))
    }
    const tokens = await grown('tokens', [10_000, 25_000, 50_000, TOKENS])
    const windows = await grown('windows', [10_000, 50_000, WINDOWS, 300_000, CLIENTS])
    const bytesAt = (points: Map<number, number>, count: number): number => points.get(count) ?? Number.NaN
    const atCap = bytesAt(windows, WINDOWS)
    const flat = 'memory with a million clients, as a multiple of the memory at the cap'
    return {
      checks: [
        checkOf('P8 token', 'per live token', 'B', bytesAt(tokens, TOKENS) / TOKENS, { reach: 340 }),
        checkOf('P8 window', 'per client window', 'B', atCap / WINDOWS, { reach: 150 }),
        checkOf('P8 cap', flat, '×', bytesAt(windows, CLIENTS) / atCap, { reach: FLAT }),
      ],
      tables: [heapTable('live tokens', tokens), heapTable('distinct clients', windows)],
    }
  },
}

function heapTable(of: string, heap: ReadonlyMap<number, number>): Table {
  const rows = [...heap].map(([count, bytes]) => [count.toLocaleString('en'), fixed(bytes / 2 ** 20, 1)])
  return { caption: `Heap by ${of}`, head: [of, 'MiB'], rows }
}

/** The number of entries, and the size of the heap with all of them. */
type HeapPoint = readonly [count: number, bytes: number]

interface Plan {
  readonly what: 'tokens' | 'windows'
  readonly counts: readonly number[]
}

/** The token store of the sidecar, in memory, with the default lifetimes. */
export function openTokenStore(capacity: number): Now<TokenStore> {
  const parts = {
    policy: {
      capacity,
      issued: 100,
      accessLifetime: HOUR,
      refreshLifetime: 7 * 24 * HOUR,
      rotateRefresh: false,
      refreshGrace: 10_000,
    },
    listener: { issued() {}, revoked() {}, evicted() {} },
    live: liveRequests(),
  }
  const memory = { clock: systemClock, journal: undefined, table: createGrantTable(capacity) }
  return createTokenStore({ ...parts, backend: createMemoryBackend({ ...parts, ...memory }) })
}

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
    const table = createWindowTable({ requests: 60, window: HOUR }, { clock: systemClock, maxKeys: WINDOWS })
    const clientOf = createClientAddress([])
    return (i) => {
      table.count(clientOf(addressOf(i), []).key)
    }
  },
}

/** The address of client `i`, of up to sixteen million. */
function addressOf(i: number): string {
  return `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
}

function heap(): number {
  for (let i = 0; i < 3; i += 1) globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Fills a table of the sidecar, and measures the heap at each of these counts. */
async function program({ what, counts }: Plan): Promise<HeapPoint[]> {
  const before = heap()
  const grow = growers[what](Math.max(...counts))
  const points: HeapPoint[] = []
  let entries = 0
  for (const count of counts) {
    for (; entries < count; entries += 1) grow(entries)
    points.push([count, heap() - before])
  }
  // Keeps the table reachable until after the last measurement.
  grow(entries)
  return points
}

await runIfMain(import.meta, program)
