import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** One case, as plain data, so that it can be saved, replayed and shrunk. */
export interface Case {
  /** Latin-1 text of each write, by a client or by the device. */
  readonly writes: readonly string[]
  /** What follows the last write: FIN, RST, or nothing. */
  readonly ending: 'end' | 'reset' | 'open'
  /** The request of the client, if the bytes are a response of the device. */
  readonly ask?: 'GET' | 'HEAD' | 'POST' | 'upgrade'
}

/** Configuration of the sidecar under test. */
export interface Setting {
  /** `h2`: TLS with HTTP/1.1 and HTTP/2. */
  readonly transport: 'http1' | 'h2'
  readonly parser: 'strict' | 'tolerant'
}

/** A saved failure. */
export interface KeptCase {
  readonly target: string
  readonly why: string
  readonly seed: number
  readonly setting: Setting
  /** One case, or several that failed only together. */
  readonly cases: readonly Case[]
}

/** Placeholders for live tokens, of the same length, so that the lengths around them stay right. */
export const ACCESS: string = 'ACCESS'.padEnd(43, '_')
export const REFRESH: string = 'REFRESH'.padEnd(43, '_')

/** Number of live tokens in a case: at most as many of its requests may be admitted. */
export function tokensIn({ writes }: Case): number {
  return writes.join('').split(ACCESS).length - 1
}

const FOLDER = join(import.meta.dirname, 'cases')

/** All saved cases, with their file names. */
export function keptCases(): readonly (readonly [string, KeptCase])[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => [name, JSON.parse(readFileSync(join(FOLDER, name), 'utf8'))])
}

/**
 * Saves a failure and returns the path of its file. The test suite replays a single case. Several cases that fail only together
 * are saved in the temporary folder, for inspection.
 */
export function keepCase(kept: KeptCase): string {
  const folder = kept.cases.length === 1 ? FOLDER : tmpdir()
  const length = kept.cases[0]?.writes.join('').length ?? 0
  const path = join(folder, `${kept.target}-${kept.seed}-${length}.json`)
  writeFileSync(path, `${JSON.stringify(kept, null, 2)}\n`)
  return path
}
