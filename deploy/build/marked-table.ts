const END = '<!-- The end of the table. -->\n'

/** A table of a page that is written from the source. */
interface MarkedTable {
  /** The line before the table, a comment that says what writes it. */
  readonly begin: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/**
 * The page with the present table between its marks.
 *
 * @throws Error if the page has no marks
 */
export function withTable(page: string, { begin, head, rows }: MarkedTable): string {
  const [before, rest] = page.split(begin, 2)
  const after = rest?.split(END, 2)[1]
  if (before === undefined || after === undefined)
    throw new Error(`the page has no place for the table: ${begin}`)
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |\n`)
  return [before, begin, '\n', ...lines, '\n', END, after].join('')
}
