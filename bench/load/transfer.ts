import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'

/** One large body, to `/` of the device (which counts it) or from its `/bytes/SIZE`. */
export interface Transfer {
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
  readonly direction: 'up' | 'down'
  readonly bytes: number
}

export interface TransferReport {
  readonly seconds: number
  /** What came: another status, another number of bytes; undefined where all was right. */
  readonly fault?: string
}

/** Milliseconds. */
const LONGEST = 120_000

/** autocannon keeps every body in memory, so this is a client of our own, on a bare socket, in a process of its own. */
export async function transfer(plan: Transfer, core: number | undefined): Promise<TransferReport> {
  const program = fileURLToPath(new URL('transfer-program.ts', import.meta.url))
  const args = [program, JSON.stringify(plan)]
  return JSON.parse(await outputOf(process.execPath, args, { core, longest: LONGEST })) as TransferReport // of our own program
}
