import { type Child, outputOf, ProgramError, startChild } from '../child.ts'

/** The tests of slowhttptest that are asked for here: slow heads, slow bodies, slow readers. */
export type SlowTest = '-H' | '-B' | '-X'

export interface SlowAttack {
  readonly test: SlowTest
  readonly url: string
  /** All that are opened, and how many of them in a second. One that is closed is not opened again. */
  readonly connections: number
  readonly rate: number
}

/** A piece of a head or of a body every five seconds; reads of 32 bytes with a window that has no room for one answer. */
const WAYS: Readonly<Record<SlowTest, readonly string[]>> = {
  '-H': ['-H', '-i', '5'],
  '-B': ['-B', '-i', '5', '-s', '4096'],
  // Ten requests in a row, so that the answers do not fit into what the kernel takes for such a reader.
  '-X': ['-X', '-w', '10', '-y', '20', '-n', '5', '-z', '32', '-k', '10'],
}

/** Seconds: until it is told to end. */
const LONGEST = 600

/** Undefined where it is not installed. */
export async function slowhttptestVersion(): Promise<string | undefined> {
  // It has no option for that: its help ends with an error.
  const help = await outputOf('slowhttptest', ['-h']).catch((error: unknown) =>
    error instanceof ProgramError ? error.output : '',
  )
  return /version (\S+)/.exec(help)?.[1]
}

/** Starts it from 127.0.0.1: it cannot choose. It gives way to whoever is measured on the same core. */
export function startSlowAttack(
  { test, url, connections, rate }: SlowAttack,
  core: number | undefined,
): Promise<Child> {
  const numbers = { c: connections, r: rate, l: LONGEST, p: 3 }
  const args = Object.entries(numbers).flatMap(([name, value]) => [`-${name}`, String(value)])
  return startChild('slowhttptest', [...args, '-u', url, ...WAYS[test]], { core, humble: true })
}
