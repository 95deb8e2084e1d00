import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readTree } from '../support/source-tree.ts'
import { type Mutant, mutantsOf } from './mutants.ts'
import { UsageError } from './subject.ts'

/** A mutant as the fixed set names it, without its place: it is found again where its function has moved. */
export interface FixedMutant {
  readonly file: string
  readonly within: string
  /** The line that it changes, without its indentation. */
  readonly line: string
  readonly change: string
  /** Which of several that are equal in all of this, from 0 on. */
  readonly nth: number
  /** What came of it when it was judged first; `open`: that is still to come. */
  readonly outcome: 'killed' | 'lived' | 'open'
  /** The test file that killed it; undefined: it lives, or was killed by time. */
  readonly by?: string | undefined
  /** Only of a mutant that lives: why no client and no operator can notice it. */
  readonly reason?: string | undefined
}

type Description = Omit<FixedMutant, 'outcome' | 'by' | 'reason'>

/** One mutant of the set, and where it is now. */
export interface Found {
  readonly fixed: FixedMutant
  readonly file: string
  readonly mutant: Mutant
}

export const FIXED_SET = 'test/mutation/fixed.json'

/**
 * The fixed set.
 * @throws UsageError if none was drawn
 */
export function readFixedSet(root: string): readonly FixedMutant[] {
  const path = join(root, FIXED_SET)
  if (!existsSync(path)) throw new UsageError(`${FIXED_SET}: no set was drawn yet: draw one with --draw SEED`)
  // Proof of the cast: `--draw` alone writes it.
  return JSON.parse(readFileSync(path, 'utf8')) as readonly FixedMutant[]
}

/** The text of a set: one mutant a line, so that a difference shows which. */
export function textOf(set: readonly FixedMutant[]): string {
  return `[\n${set.map((each) => JSON.stringify(each)).join(',\n')}\n]\n`
}

interface Described {
  readonly description: Description
  readonly mutant: Mutant
}

/** Every mutant of a file, with its description. */
function describedIn(file: string, text: string): readonly Described[] {
  const lines = text.split('\n')
  const seen = new Map<string, number>()
  return mutantsOf(text).map((mutant) => {
    const { within, change } = mutant
    const line = (lines[mutant.line - 1] ?? '').trim()
    const key = keyOf({ within, line, change })
    const nth = seen.get(key) ?? 0
    seen.set(key, nth + 1)
    return { description: { file, within, line, change, nth }, mutant }
  })
}

function keyOf({ within, line, change }: Pick<Description, 'within' | 'line' | 'change'>): string {
  return JSON.stringify([within, line, change])
}

/** The room of a file: its folder under `src/`, or the file itself. */
const roomOf = (file: string): string => file.split('/')[1] ?? file

/** The fewest mutants of a room in a set, if it has so many. */
const LEAST = 3

/**
 * Draws mutants over all rooms of `src/`: of each room a share by its number of mutants, and at least three. The same seed draws the same
 * mutants of the same text.
 *
 * @param tree the files under `src/`
 */
export function draw(count: number, seed: string, tree: ReadonlyMap<string, string>): readonly Description[] {
  const all = [...tree]
    .filter(([file]) => /\.ts$/.test(file))
    .flatMap(([file, text]) => describedIn(file, text).map(({ description }) => description))
  const chance = (each: Description): string =>
    createHash('sha256')
      .update(`${seed} ${JSON.stringify(each)}`)
      .digest('hex')
  const shuffled = all
    .map((each) => ({ each, chance: chance(each) }))
    .toSorted((a, b) => (a.chance < b.chance ? -1 : 1))
    .map(({ each }) => each)
  const ofRoom = Map.groupBy(shuffled, ({ file }) => roomOf(file))
  const drawn = [...ofRoom.values()].flatMap((each) =>
    each.slice(0, Math.max(LEAST, Math.floor((count * each.length) / all.length))),
  )
  const taken = new Set(drawn)
  const rest = shuffled.filter((each) => !taken.has(each))
  return [...drawn, ...rest].slice(0, count).toSorted((a, b) => (a.file < b.file ? -1 : 1))
}

/**
 * Where the mutants of a set are now: in their file, or, if the function has moved, in the one file that has it. `gone`: the code that they
 * change is no more.
 */
export function find(
  set: readonly FixedMutant[],
  root: string,
): { readonly found: readonly Found[]; readonly gone: readonly FixedMutant[] } {
  const tree = readTree(root, 'src')
  const described = new Map(
    [...tree].filter(([file]) => /\.ts$/.test(file)).map(([file, text]) => [file, describedIn(file, text)]),
  )
  const gone: FixedMutant[] = []
  const found = set.flatMap((fixed) => {
    const isIt = ({ description }: Described): boolean =>
      keyOf(description) === keyOf(fixed) && description.nth === fixed.nth
    const here = described.get(fixed.file)?.find(isIt)
    const elsewhere = here === undefined ? [...described.values()].flatMap((each) => each.filter(isIt)) : []
    const at = here ?? (elsewhere.length === 1 ? elsewhere[0] : undefined)
    if (at === undefined) {
      gone.push(fixed)
      return []
    }
    return [{ fixed, file: at.description.file, mutant: at.mutant }]
  })
  return { found, gone }
}
