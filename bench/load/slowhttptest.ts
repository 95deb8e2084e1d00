import { type Child, outputOf, ProgramError, startChild } from '../child.ts'

/** Modes of slowhttptest: slow heads, slow bodies, slow readers. */
export type SlowTest = '-H' | '-B' | '-X'

export interface SlowAttack {
  readonly test: SlowTest
  readonly url: string
  /** Connections in total, and opened per second. A closed connection is not reopened. */
  readonly connections: number
  readonly rate: number
}

/** A piece of a head or a body every five seconds; reads of 32 bytes with a window smaller than one response. */
const OPTIONS: Readonly<Record<SlowTest, readonly string[]>> = {
  '-H': ['-H', '-i', '5'],
  '-B': ['-B', '-i', '5', '-s', '4096'],
  // Ten pipelined requests: their responses exceed the receive buffer of the kernel.
  '-X': ['-X', '-w', '10', '-y', '20', '-n', '5', '-z', '32', '-k', '10'],
}

/** Longer than any attack (seconds): `stop` ends it. */
const DURATION = 600

/** Undefined if it is not installed. */
export async function slowhttptestVersion(): Promise<string | undefined> {
  // No option prints only the version. The help contains it and exits with an error.
  const help = await outputOf('slowhttptest', ['-h']).catch((error: unknown) =>
    error instanceof ProgramError ? error.output : '',
  )
  return /version (\S+)/.exec(help)?.[1]
}

/** Starts slowhttptest at idle priority. Its address is always 127.0.0.1. */
export function startSlowAttack(
  { test, url, connections, rate }: SlowAttack,
  core: number | undefined,
): Promise<Child> {
  const numbers = { c: connections, r: rate, l: DURATION, p: 3 }
  const args = Object.entries(numbers).flatMap(([name, value]) => [`-${name}`, String(value)])
  return startChild('slowhttptest', [...args, '-u', url, ...OPTIONS[test]], { core, idlePriority: true })
}
