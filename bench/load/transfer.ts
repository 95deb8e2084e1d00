import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { outputOf } from '../child.ts'

/** One large body: up to `/` of the device, which counts the bytes, or down from `/bytes/SIZE`. */
export interface Transfer {
  readonly port: number
  readonly headers: Readonly<Record<string, string>>
  readonly direction: 'up' | 'down'
  readonly bytes: number
}

export interface TransferReport {
  readonly seconds: number
  /** Another status or another number of bytes; undefined if the transfer was correct. */
  readonly fault?: string
}

/** Milliseconds. */
const TIMEOUT = 120_000

/** Runs a client of our own, on a bare socket, in a separate process: autocannon buffers every body. */
export async function transfer(plan: Transfer, core: number | undefined): Promise<TransferReport> {
  const program = fileURLToPath(new URL('transfer-program.ts', import.meta.url))
  const args = [program, JSON.stringify(plan)]
  return JSON.parse(await outputOf(process.execPath, args, { core, timeout: TIMEOUT })) as TransferReport // see the program
}
