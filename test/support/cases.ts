import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'

/** What a round gives, or what comes of it: texts by label, the lines of a text with `\n` between them. */
type Parts = Readonly<Record<string, string | undefined>>

/** What the cases of some files have in common. */
interface CaseFamily {
  /** The labels of what a round gives. */
  readonly given: readonly string[]
  /** The labels of what comes of it. */
  readonly results: readonly string[]
  /** The labels of remarks: prose that `play` may ask for. */
  readonly remarks?: readonly string[]
  /** Does what the round says, and tells what came of it. It may also throw, as a test does. */
  play(given: Parts): Parts | Promise<Parts>
}

/** A text behind a label. */
interface Part {
  readonly label: string
  readonly lines: readonly string[]
}

/** What is given together, and what comes of it: a test, or one for each of several parts with one label. */
interface Round {
  /** Counted from 1, in its file. */
  readonly line: number
  readonly given: readonly Part[]
  readonly results: readonly Part[]
  readonly remarks: readonly Part[]
}

/** A case as it stands in its file. */
interface Case {
  readonly section: string
  /** The ids of its promises, if there are any, and its name. */
  readonly title: string
  readonly rounds: readonly Round[]
  /** From the headings above it. */
  readonly inherited: readonly Part[]
  /** The lines of its block, counted from 0. The end is exclusive. */
  readonly block: readonly [from: number, to: number]
}

const ROOT = join(import.meta.dirname, '../..')
/** The column of a text, counted from that of its label. */
const WIDTH = 10
const INDENT = '    '

/**
 * Makes tests of the cases in text files, whose form README.md describes. A case that fails names its file and line, and
 * `vitest --update=all` writes what came into the files.
 * @param path a file, or a folder of them
 */
export function runCases(path: string, family: CaseFamily): void {
  const files = path.endsWith('.txt')
    ? [path]
    : readdirSync(path)
        .filter((name) => name.endsWith('.txt'))
        .map((name) => join(path, name))
  for (const file of files) describe(relative(ROOT, file), () => runFile(file, family))
}

/** A text in place of the ellipsis of the one around it. */
export function inside(around: string | undefined, text: string): string {
  return around === undefined ? text : around.replace('…', () => text)
}

function runFile(file: string, family: CaseFamily): void {
  const text = readFileSync(file, 'utf8')
  const cases = readCases(text, relative(ROOT, file), family)
  const came = new Map<Round, readonly Part[]>()
  for (const [section, its] of Map.groupBy(cases, (each) => each.section))
    describe(section, () => {
      it.each(its.flatMap((each) => testsOf(each)))('$title', async ({ round, given }) => {
        try {
          const found = partsOf(await family.play(given), family)
          const [wanted, why] = isUpdating()
            ? [came.get(round) ?? found, ': these lines have one label, so one result must come of all']
            : [round.results, '']
          came.set(round, found)
          expect(shown(found), `${relative(ROOT, file)}:${round.line}${why}`).toBe(shown(wanted))
        } catch (error) {
          if (error instanceof Error)
            error.stack = `${error.name}: ${error.message}\n    at round (${file}:${round.line}:1)`
          throw error
        }
      })
    })
  it('stands as `vitest --update=all` writes it', async () => {
    await expect(written(text, cases, isUpdating() ? came : new Map())).toMatchFileSnapshot(file)
  })
}

/** Whether `vitest --update=all` runs. */
function isUpdating(): boolean {
  return expect.getState().snapshotState.snapshotUpdateState === 'all'
}

/** The tests of a case. */
function testsOf({ title, rounds, inherited }: Case) {
  return rounds.flatMap((round) => {
    const parts = [...inherited, ...round.given, ...round.remarks]
    const all = Object.fromEntries(parts.map((part) => [part.label, textOf(part)]))
    const labels = Map.groupBy(round.given, ({ label }) => label)
    const several = [...labels.values()].find(({ length }) => length > 1)
    if (several === undefined && rounds.length === 1) return [{ title, round, given: all }]
    return (several ?? round.given.slice(0, 1)).map((part) => ({
      title: `${title}: ${part.lines.join(' ').slice(0, 60)}`,
      round,
      given: { ...all, [part.label]: textOf(part) },
    }))
  })
}

const textOf = ({ lines }: Part): string => lines.join('\n')

function partsOf(results: Parts, family: CaseFamily): readonly Part[] {
  return family.results.flatMap((label) => {
    const text = results[label]
    return text === undefined ? [] : [{ label, lines: text.split('\n') }]
  })
}

const HEADING = /^(#{1,3}) ((?:[CH]\d+ )*)(.*)$/

/**
 * Reads the cases of a file.
 * @param file its name, for the errors
 * @throws Error for a line that has no meaning
 */
export function readCases(text: string, file: string, family: CaseFamily): readonly Case[] {
  const lines = text.split('\n')
  const cases: Case[] = []
  const fail = (line: number, why: string): never => {
    throw new Error(`${file}:${line}: ${why}`)
  }
  let ids: readonly string[] = []
  let inherited: readonly (readonly Part[])[] = []
  let section = ''
  let at = 0
  while (at < lines.length) {
    const line = lines[at] ?? ''
    at += 1
    const [, { length: level } = '', itsIds = '', name = ''] = HEADING.exec(line) ?? []
    if (level === 0 && line.startsWith(' ')) fail(at, 'a line of a case stands directly below its heading')
    if (level === 0) continue
    const from = at
    while (lines[at]?.startsWith(INDENT)) at += 1
    const rounds = roundsOf(lines.slice(from, at), from + 1, family, fail)
    ids = [...ids.slice(0, level - 1), itsIds]
    if (level < 3) {
      inherited = [
        ...inherited.slice(0, level - 1),
        rounds.flatMap(({ given, remarks }) => [...given, ...remarks]),
      ]
      section = name
      continue
    }
    const title = `${ids.join('')}${name}`
    if (cases.some((other) => other.section === section && other.title === title))
      fail(from, 'another case of this section has this name')
    if (rounds.length === 0) fail(from, 'the case gives nothing')
    cases.push({ section, title, rounds, inherited: inherited.flat(), block: [from, at] })
  }
  return cases
}

/** A round that is being read. */
interface OpenRound {
  readonly line: number
  readonly given: Part[]
  readonly results: Part[]
  readonly remarks: Part[]
}

/** The rounds of a block: a new one begins where something is given behind a result. */
function roundsOf(
  lines: readonly string[],
  first: number,
  { given, results, remarks = [] }: CaseFamily,
  fail: (line: number, why: string) => never,
): readonly Round[] {
  const rounds: OpenRound[] = []
  let last: string[] | undefined
  for (const [i, line] of lines.entries()) {
    const label = line.slice(INDENT.length, INDENT.length + WIDTH).trim()
    const text = line.slice(INDENT.length + WIDTH)
    if (line.endsWith(' ')) fail(first + i, 'a blank at the end of a line, where an editor may remove it')
    if (label === '') {
      if (last === undefined) fail(first + i, 'the first line has no label')
      last?.push(text)
      continue
    }
    last = [text]
    const part = { label, lines: last }
    const open = rounds.at(-1)
    const goesOn = open !== undefined && !(given.includes(label) && open.results.length > 0)
    const round: OpenRound = goesOn ? open : { line: first + i, given: [], results: [], remarks: [] }
    if (!goesOn) rounds.push(round)
    if (given.includes(label)) round.given.push(part)
    else if (results.includes(label)) round.results.push(part)
    else if (remarks.includes(label)) round.remarks.push(part)
    else fail(first + i, `${label} is none of ${[...given, ...results, ...remarks].join(', ')}`)
  }
  return rounds
}

function shown(parts: readonly Part[]): string {
  const lines = parts.flatMap(({ label, lines }) =>
    lines.map((line, i) => `${INDENT}${(i === 0 ? label : '').padEnd(WIDTH)}${line}`.trimEnd()),
  )
  return lines.join('\n')
}

/** The file with what came in place of what stands there. */
function written(text: string, cases: readonly Case[], came: ReadonlyMap<Round, readonly Part[]>): string {
  const lines = text.split('\n')
  for (const { rounds, block } of cases.toReversed()) {
    const parts = rounds.flatMap((round) => [
      ...round.given,
      ...(came.get(round) ?? round.results),
      ...round.remarks,
    ])
    lines.splice(block[0], block[1] - block[0], ...shown(parts).split('\n'))
  }
  return lines.join('\n')
}
