import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'

/** What `heap-program.ts` prints: how many there are, and the bytes that they take together. */
export type HeapPoint = readonly [count: number, bytes: number]

/** Milliseconds. */
const LONGEST = 120_000

/** Grows a table of the sidecar's own, in a process of its own, and tells at each of these counts what it takes. */
export async function heapGrowth(
  what: 'tokens' | 'windows',
  counts: readonly number[],
  core: number | undefined,
): Promise<readonly HeapPoint[]> {
  const program = fileURLToPath(new URL('heap-program.ts', import.meta.url))
  const args = ['--expose-gc', program, what, JSON.stringify(counts)]
  return JSON.parse(await outputOf(process.execPath, args, { core, longest: LONGEST })) as HeapPoint[] // of our own program
}
