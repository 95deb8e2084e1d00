import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** A file of a release, by its path in the folder. */
export interface Sum {
  readonly name: string
  /** In hexadecimal. */
  readonly sha256: string
}

/** The digest of every file in a folder and below, sorted by name. */
export async function sumsOf(folder: string): Promise<readonly Sum[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  const names = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)))
  return Promise.all(names.sort().map(async (name) => ({ name, sha256: await digestOf(join(folder, name)) })))
}

/** The SHA-256 of a file, in hexadecimal. */
export async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/** The lines that `sha256sum --check` reads. */
export function sumLines(sums: readonly Sum[]): string {
  return sums.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('')
}
