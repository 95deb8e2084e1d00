import type { Check, Figure, Line, LineChart } from '../figure.ts'
import { type HeapPoint, heapGrowth } from '../growth/heap.ts'
import { MEBIBYTE } from '../resident-memory.ts'

const TOKENS = 100_000

/** The default of `limits.max_keys`, and how many clients come after that. */
const WINDOWS = 100_000
const CLIENTS = 1_000_000

/** What the table may grow by beyond its cap: that it does not grow with the clients, not a byte count. */
const FLAT = 1.02

export const growthOfTables: Figure = {
  id: 'P8',
  title: 'Memory of tokens and windows',
  about:
    "The heap of a process that holds nothing but the sidecar's own token store, or its own window table, collected before each look. Each window belongs to a client of its own; past 100,000 of them (`limits.max_keys`) newcomers share one.",
  async measure(lab) {
    const tokens = await heapGrowth('tokens', [10_000, 25_000, 50_000, TOKENS], lab.proxyCore)
    const windows = await heapGrowth('windows', [10_000, 50_000, WINDOWS, 300_000, CLIENTS], lab.proxyCore)
    const atCap = bytesAt(windows, WINDOWS)
    const check = (id: string, what: string, reach: number, value: number | undefined): Check => ({
      id,
      what,
      unit: 'B',
      better: 'less',
      reach,
      value,
      comparable: 'anywhere',
    })
    const atEnd = bytesAt(windows, CLIENTS)
    return {
      checks: [
        check('P8 token', 'per live token', 400, per(bytesAt(tokens, TOKENS), TOKENS)),
        check('P8 window', 'per client window', 150, per(atCap, WINDOWS)),
        {
          ...check('P8 cap', 'a million clients, of the memory at the cap', FLAT, undefined),
          unit: '×',
          value: atCap === undefined || atEnd === undefined ? undefined : atEnd / atCap,
        },
      ],
      charts: [
        chart('Heap by live tokens', 'live tokens', tokens),
        chart('Heap by distinct clients', 'distinct clients', windows),
      ],
      tables: [],
      notes: [],
      faults: [],
    }
  },
}

function bytesAt(points: readonly HeapPoint[], count: number): number | undefined {
  return points.find(([there]) => there === count)?.[1]
}

function per(bytes: number | undefined, count: number): number | undefined {
  return bytes === undefined ? undefined : bytes / count
}

function chart(title: string, label: string, points: readonly HeapPoint[]): LineChart {
  const line: Line = {
    name: 'postern',
    ours: true,
    points: points.map(([count, bytes]) => [count, bytes / MEBIBYTE]),
  }
  return {
    kind: 'lines',
    title,
    x: { label, scale: 'linear' },
    y: { label: 'MiB', scale: 'linear' },
    series: [line],
  }
}
