import type { ProgramIo } from './command.ts'

/** After this time (ms) a person wants to know what a command waits for. */
const SLOW = 3_000

/** Awaits `work`, and says on a terminal if it takes longer than `SLOW`. */
export async function stillWaiting<T>(
  what: string,
  work: Promise<T>,
  { stderr, clock }: Pick<ProgramIo, 'stderr' | 'clock'>,
): Promise<T> {
  const timer = clock.after(SLOW, () => {
    if (stderr.isTTY) stderr.write(`Still waiting: ${what} ...\n`)
  })
  try {
    return await work
  } finally {
    timer.cancel()
  }
}
