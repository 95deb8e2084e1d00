import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import process from 'node:process'
import { importsOf, readTree, type SourceTree } from '../support/source-tree.ts'
import { type Mutant, mutantsOf } from './mutants.ts'

/** A source file, what is changed in it, and the tests that should notice. */
export interface Subject {
  /** As it was named. */
  readonly name: string
  /** Absolute, like those of the tests. */
  readonly path: string
  readonly text: string
  readonly mutants: readonly Mutant[]
  readonly tests: readonly string[]
}

/** A mistake on the command line. The message names it. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export interface Choice {
  /** At most so many mutants, spread evenly over the file. */
  readonly sample: number
  /** Parts of the paths of the test files; undefined: the neighbours of the file. */
  readonly tests: readonly string[] | undefined
}

/**
 * Reads `FILE[:LINE[-LINE]]`.
 * @param root the folder of the project, where `src/` is
 * @throws UsageError if it is no file under `src/`, or nothing can be changed in the lines
 */
export function readSubject(
  named: string,
  { sample, tests: parts }: Choice,
  root: string = process.cwd(),
): Subject {
  const [, file = named, first, last = first] = /^(.*?)(?::(\d+)(?:-(\d+))?)?$/.exec(named) ?? []
  const path = resolve(root, file)
  const name = relative(root, path)
  if (!/^src\/.*\.[jt]s$/.test(name)) throw new UsageError(`${file}: must be a .ts or .js file under src/`)
  if (!existsSync(path)) throw new UsageError(`${file}: no such file`)
  const text = readFileSync(path, 'utf8')
  const mutants = mutantsOf(text).filter(({ line }) => !(line < Number(first) || line > Number(last)))
  if (first !== undefined && mutants.length === 0)
    throw new UsageError(`${named}: nothing can be changed here: name other lines`)
  const tree = readTree(root, 'test')
  const tests =
    parts === undefined
      ? neighboursOf(name, tree)
      : testsIn(tree).filter((test) => parts.some((part) => test.includes(part)))
  return {
    name: named,
    path,
    text,
    mutants: spread(mutants, sample),
    tests: tests.map((test) => join(root, test)),
  }
}

function spread(mutants: readonly Mutant[], sample: number): readonly Mutant[] {
  if (mutants.length <= sample) return mutants
  const share = Math.floor(sample) / mutants.length
  return mutants.filter((_, i) => Math.floor((i + 1) * share) > Math.floor(i * share))
}

/**
 * The source files that have changed since the branch left `ref`, in commits or in the working tree.
 * @throws UsageError if there are none, or git does not know `ref`
 */
export function changedFiles(ref: string, root: string = process.cwd()): string[] {
  const shown = ['--name-only', '--diff-filter=d', '--relative', '--merge-base', ref]
  let changed: string
  try {
    changed = execFileSync('git', ['diff', ...shown, '--', 'src/*.ts', 'src/*.js'], {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  } catch {
    throw new UsageError(`--diff ${ref}: git finds no such branch or commit`)
  }
  const files = changed.split('\n').filter(Boolean)
  if (files.length === 0) throw new UsageError(`no file under src/ has changed since ${ref}: name one`)
  return files
}

/** The room of a source file or a test: its first folder, or none if it is in no room, such as `src/main.ts`. */
function roomOf(path: string): string {
  const [, room = '', inRoom] = path.split('/')
  return inRoom === undefined ? '' : room
}

/**
 * The test files near a source file: those of its room, the folder under `test/` with the name of its first folder, and those that import it,
 * directly or through a file beside them. `test/support` does not count: through it nearly every test imports every source file.
 * @param name the path from the root, as in `tree`
 */
export function neighboursOf(name: string, tree: SourceTree): string[] {
  const imports = [...tree]
    .filter(([path]) => !path.startsWith('test/support/'))
    .map(([path, text]) => ({ path, imported: importsOf(path, text) }))
  const importers = new Set([name])
  // A set that grows while it is walked: each importer is looked at, too.
  for (const importer of importers) {
    for (const { path, imported } of imports) if (imported.includes(importer)) importers.add(path)
  }
  const room = roomOf(name)
  return testsIn(tree).filter((path) => importers.has(path) || roomOf(path) === room)
}

const testsIn = (tree: SourceTree): string[] => [...tree.keys()].filter((path) => path.endsWith('.test.ts'))
