import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Result } from '../figure.ts'
import { measuredRow, type PublishedFigure, writtenPage } from './published.ts'

/** From the root of the repository. */
const FIGURES = 'bench/figures.json'

/**
 * Writes the figures of a run into `bench/figures.json` and onto their pages. A figure with a fault is not written. Resolves to a line for
 * each file that was written, and for all that someone has to look after.
 *
 * @param root of the repository
 * @param isRun whether the run was one of this command
 */
export async function publish(
  root: string,
  isRun: (command: string) => boolean,
  result: Result,
): Promise<readonly string[]> {
  const file = join(root, FIGURES)
  const rows = JSON.parse(await readFile(file, 'utf8')) as readonly PublishedFigure[] // test/pages/figures.test.ts reads it
  const checks = result.figures.filter(({ faults }) => faults.length === 0).flatMap((figure) => figure.checks)
  const lines: string[] = []
  const after = rows.map((row) => {
    if (row.check === undefined || !isRun(row.command)) return row
    const measured = measuredRow(row, { ...result, checks })
    if (measured === row) lines.push(`${FIGURES}: ${row.id}: no value of ${row.check}`)
    return measured
  })
  const changed = new Set(after.filter((row, i) => row !== rows[i]).map(({ page }) => page))
  if (changed.size > 0) await writeFile(file, `${JSON.stringify(after, null, 2)}\n`)
  for (const page of changed) {
    const of = (all: readonly PublishedFigure[]) => all.filter((row) => row.page === page)
    const { text, left } = writtenPage(await readFile(join(root, page), 'utf8'), of(rows), of(after))
    await writeFile(join(root, page), text)
    lines.push(
      `written: ${page} and ${FIGURES}`,
      ...left.map((what) => `write into ${page} yourself: ${what}`),
    )
  }
  return lines
}
