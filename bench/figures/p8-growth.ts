import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'
import type { Check, Figure, Line, LineChart } from '../figure.ts'
import { MEBIBYTE } from '../process-usage.ts'

const TOKENS = 100_000

/** The default of `limits.max_keys`, and ten times as many clients. */
const WINDOWS = 100_000
const CLIENTS = 1_000_000

/** Allowed growth past the cap: shows that the table does not grow with the clients, and allows noise of the heap. */
const FLAT = 1.02

export const growthOfTables: Figure = {
  id: 'P8',
  title: 'Memory of tokens and windows',
  about:
    'The heap of a process that holds only the token store of the sidecar, or only its window table, after garbage collection. Each window belongs to one client; past 100,000 of them (`limits.max_keys`) new clients share one.',
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
          ...check(
            'P8 cap',
            'memory with a million clients, as a multiple of the memory at the cap',
            FLAT,
            undefined,
          ),
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
  return points.find(([entries]) => entries === count)?.[1]
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

/** `heap-program.ts` prints these: the number of entries, and the size of the heap with all of them. */
export type HeapPoint = readonly [count: number, bytes: number]

/** Milliseconds. */
const TIMEOUT = 120_000

/** Fills a table of the sidecar in a separate process, and measures the heap at each of these counts. */
async function heapGrowth(
  what: 'tokens' | 'windows',
  counts: readonly number[],
  core: number | undefined,
): Promise<readonly HeapPoint[]> {
  const program = fileURLToPath(new URL('heap-program.ts', import.meta.url))
  const args = ['--expose-gc', program, what, JSON.stringify(counts)]
  return JSON.parse(await outputOf(process.execPath, args, { core, timeout: TIMEOUT })) as HeapPoint[] // see `heap-program.ts`
}
