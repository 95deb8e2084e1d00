import type { Check, Machine } from '../figure.ts'
import { rounded } from '../format.ts'

/** A row of `bench/figures.json`: a measured figure that a page names. The rows of a page are in the order in which it names them. */
export interface PublishedFigure {
  readonly id: string
  /** The check that measures it; undefined if someone reads it from what the command prints. */
  readonly check?: string
  /** As the page writes them; a count has no unit. */
  readonly value: string
  readonly unit: string
  /** What measures it. */
  readonly command: string
  readonly machine: string
  readonly day: string
  /** The one page on which it stands. */
  readonly page: string
}

/** What the page writes. */
export function textOf({ value, unit }: PublishedFigure): string {
  return `${value} ${unit}`.trim()
}

/** What a run of the command of some rows has found. */
interface Measured {
  readonly checks: readonly Check[]
  /** ISO 8601. */
  readonly at: string
  readonly machine: Pick<Machine, 'cores' | 'processor'>
}

/** The row after a run that has measured it. Without its check, or without a value, it stays as it is. */
export function measuredRow(row: PublishedFigure, { checks, at, machine }: Measured): PublishedFigure {
  const found = checks.find(({ id }) => id === row.check)
  if (found?.value === undefined) return row
  // Someone has written more about the machine than the machine tells.
  const { cores, processor } = machine
  const known = row.machine.includes(processor) ? row.machine : `${cores} cores of ${processor}`
  return { ...row, value: rounded(found.value), machine: known, day: at.slice(0, 10) }
}

interface WrittenPage {
  readonly text: string
  /** What someone has to write into the page, in words. */
  readonly left: readonly string[]
}

/**
 * A page with the present values of its rows, and with their day and machine. A value that stands on the page more or less often than it
 * should is left, as are a day and a machine that other rows still have.
 *
 * @param before the rows of the page as it is; `after`: the same rows as it should be
 */
export function writtenPage(
  page: string,
  before: readonly PublishedFigure[],
  after: readonly PublishedFigure[],
): WrittenPage {
  const rows = before.map((row, i) => ({ id: row.id, from: textOf(row), to: textOf(after[i] ?? row) }))
  const left: string[] = []
  const pattern = patternOf(rows.map(({ from }) => from))
  const written = Map.groupBy(page.matchAll(pattern), ([found]) => oneLine(found))
  /** What comes in place of each occurrence of a text, in the order of the page. */
  const texts = new Map<string, string[]>()
  for (const [from, of] of Map.groupBy(rows, (row) => row.from)) {
    if (written.get(from)?.length === of.length)
      texts.set(
        from,
        of.map(({ to }) => to),
      )
    else left.push(...of.flatMap(({ id, to }) => (from === to ? [] : [`${id}: ${to}, not ${from}`])))
  }
  const valued = page.replace(pattern, (found) => texts.get(oneLine(found))?.shift() ?? found)
  const text = (['day', 'machine'] as const).reduce((dated, key) => {
    const [was, is] = [before, after].map((of) => new Set(of.map((row) => row[key])))
    if (was === undefined || is === undefined) return dated
    const [[gone, ...moreGone], [come, ...moreCome]] = [[...was.difference(is)], [...is.difference(was)]]
    if (gone !== undefined && come !== undefined && moreGone.length + moreCome.length === 0)
      return dated.replaceAll(gone, come)
    left.push(...[...is.difference(was)].map((value) => `${key}: ${value}`))
    return dated
  }, valued)
  return { text, left }
}

function oneLine(text: string): string {
  return text.replace(/\s/g, ' ')
}

/** Finds these texts, also across a line break: the longest first, and none within another number. */
function patternOf(texts: readonly string[]): RegExp {
  const longestFirst = texts.toSorted((a, b) => b.length - a.length)
  const any = longestFirst.map((text) => text.split(' ').map(RegExp.escape).join('\\s'))
  return new RegExp(`(?<![\\d.,])(?:${any.join('|')})(?!\\w)`, 'g')
}
