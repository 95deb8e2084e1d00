import { readdir } from 'node:fs/promises'
import { runTool } from './run-tool.ts'

/** A file of a release. */
export interface Sum {
  readonly name: string
  /** In hexadecimal. */
  readonly sha256: string
}

/** What `sha256sum --check` reads: a line for each file of a folder, sorted by name, but for the list itself and its signature. */
export async function sumLines(folder: string): Promise<string> {
  const names = (await readdir(folder)).filter((name) => !name.startsWith('SHA256SUMS')).sort()
  return runTool('sha256sum', names, folder)
}

export function sumsIn(lines: string): readonly Sum[] {
  return [...lines.matchAll(/^(\w{64}) {2}(.+)$/gm)].map(([, sha256 = '', name = '']) => ({ name, sha256 }))
}
