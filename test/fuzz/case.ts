import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What one try consists of: plain data, so that it can be kept, played again and made smaller. */
export interface Case {
  /** Bytes as latin1 text, write by write: a client's towards the sidecar, or a device's towards it. */
  readonly writes: readonly string[]
  /** What happens behind the last write: FIN, RST, or nothing. */
  readonly ending: 'end' | 'reset' | 'open'
  /** Where the bytes are a device's answer: what the client asked. */
  readonly ask?: 'GET' | 'HEAD' | 'POST' | 'upgrade'
}

/** What the sidecar is that the case is played to. */
export interface Setting {
  /** `h2`: over TLS, where HTTP/2 is spoken as well. */
  readonly transport: 'http1' | 'h2'
  readonly parser: 'strict' | 'tolerant'
}

/** A failure that was found once, as a file. */
export interface KeptCase {
  readonly target: string
  readonly why: string
  readonly seed: number
  readonly setting: Setting
  /** One, or those that failed only together. */
  readonly cases: readonly Case[]
}

/** Stand where a live token goes, and are as long as one, so that lengths around them stay right. */
export const ACCESS: string = 'ACCESS'.padEnd(43, '_')
export const REFRESH: string = 'REFRESH'.padEnd(43, '_')

/** The most tokens that a text shows: no more requests than that can have been admitted because of it. */
export function tokensIn({ writes }: Case): number {
  return writes.join('').split(ACCESS).length - 1
}

const FOLDER = join(import.meta.dirname, 'cases')

/** Every kept case, with the name of its file. */
export function keptCases(): readonly (readonly [string, KeptCase])[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => [name, JSON.parse(readFileSync(join(FOLDER, name), 'utf8'))])
}

/**
 * Keeps a failure, and gives the path of its file. One case is for the suite to play again; several, none of which fails
 * by itself, are for somebody to look at, out of the way.
 */
export function keepCase(kept: KeptCase): string {
  const folder = kept.cases.length === 1 ? FOLDER : tmpdir()
  const length = kept.cases[0]?.writes.join('').length ?? 0
  const path = join(folder, `${kept.target}-${kept.seed}-${length}.json`)
  writeFileSync(path, `${JSON.stringify(kept, null, 2)}\n`)
  return path
}
