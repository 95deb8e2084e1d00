import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What the source weighs. It is counted, so it is the same on every machine. */
export interface SourceWeight {
  readonly 'source: lines': number
  readonly 'source: files': number
  readonly 'packages at run time': number
}

/** Counts the files of `src/` that git knows (TypeScript, JavaScript, styles, HTML), and the packages that npm installs with Postern. */
export function weighSource(root: string): SourceWeight {
  const tracked = execFileSync('git', ['ls-files', '-z', 'src'], { cwd: root, encoding: 'utf8' }).split('\0')
  const source = tracked.filter((path) => /\.(?:ts|js|css|html)$/.test(path))
  const lines = source.map((path) => readFileSync(join(root, path), 'utf8').split('\n').length - 1)
  return {
    'source: lines': lines.reduce((sum, count) => sum + count, 0),
    'source: files': source.length,
    'packages at run time': packagesAtRunTime(readFileSync(join(root, 'package-lock.json'), 'utf8')),
  }
}

interface Locked {
  readonly dev?: boolean
  readonly optional?: boolean
}

function packagesAtRunTime(lock: string): number {
  // Proof of the cast: npm writes this file, and a test of the audit reads it, too.
  const { packages } = JSON.parse(lock) as { readonly packages: Readonly<Record<string, Locked>> }
  return Object.entries(packages).filter(([path, { dev, optional }]) => path !== '' && !dev && !optional)
    .length
}
