// How commands lay out text. On a terminal a line has at most 80 columns, the width of a serial console.

export const WIDTH = 80

/** The columns that a line may have. Without a terminal there is no bound, so each fact is on one line, for grep. */
export function columnsOf(output: { readonly isTTY?: boolean }): number {
  return output.isTTY === true ? WIDTH : Number.POSITIVE_INFINITY
}

/** Characters without a column of their own: combining marks, joiners and bidirectional controls. */
const NO_COLUMN = /[\p{Mn}\p{Me}\p{Cf}]/u
/** Characters of two columns (Unicode TR 11: wide and fullwidth): the scripts of East Asia, and emoji. */
const TWO_COLUMNS =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u

/** How many columns of a terminal a text takes. */
export function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length
  let width = 0
  for (const character of text) width += NO_COLUMN.test(character) ? 0 : TWO_COLUMNS.test(character) ? 2 : 1
  return width
}

/** Lays out rows of cells. Each column but the last is as wide as its widest cell. */
export function linesOf(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = []
  for (const row of rows)
    for (const [column, cell] of row.slice(0, -1).entries())
      widths[column] = Math.max(widths[column] ?? 0, widthOf(cell))
  return rows.map((row) =>
    row
      .map((cell, i) => cell + ' '.repeat(Math.max(0, (widths[i] ?? 0) - widthOf(cell))))
      .join('  ')
      .trimEnd(),
  )
}

/**
 * Lays out a table whose first column is an id, for copying. If a line would be too long, each id is on its own line with the rest below
 * it. An id is never cut.
 */
export function tableOf(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number,
): string[] {
  const lines = linesOf([head, ...rows])
  if (lines.every((line) => widthOf(line) <= columns)) return lines
  const rest = linesOf([head, ...rows].map((row) => row.slice(1)))
  return [head, ...rows].map(([id = ''], i) => `${id}\n  ${wrapped(rest[i] ?? '', 2, columns)}`)
}

/** A command that a remedy names is for copying, so it stays on one line. */
const COMMAND = /^(?:chmod|chown|cp|mv) \S|\s&&\s/

/** A space at which a line may break: not within a piece of YAML, such as `tls: {ca: FILE}`. */
const SPACE = / (?!\{|[^{}]{0,200}\})/

/**
 * Breaks a text into lines between words. A word that does not fit after the indent gets a smaller indent. The terminal breaks a word that
 * is longer than a line, so it can be copied whole.
 *
 * @param indent the columns in front of each line. The caller writes the indent of the first line.
 * @param columns the result of `columnsOf`. Without a bound the text is unchanged. A text of several lines, such as a stack, is unchanged,
 *   too.
 */
export function wrapped(text: string, indent: number, columns: number): string {
  if (columns === Number.POSITIVE_INFINITY || text.includes('\n')) return text
  const clauses = text.split(/(?<=;) /)
  const words = clauses.flatMap((clause) => (COMMAND.test(clause) ? [clause] : clause.split(SPACE)))
  const lines = ['']
  let width = indent
  for (const [i, word] of words.entries()) {
    const [gap, own] = [i === 0 ? 0 : 1, widthOf(word)]
    const fits = width + gap + own <= columns
    if (fits || (i === 0 && own > columns)) {
      lines.push(`${lines.pop()}${' '.repeat(gap)}${word}`)
      width += gap + own
    } else {
      const less = Math.max(0, Math.min(indent, columns - own))
      lines.push(' '.repeat(less) + word)
      width = less + own
    }
  }
  return lines.join('\n')
}

/** Breaks each line of a text for a terminal. The further lines have the indent of the text, after the line's own indent and number. */
export function fitted(text: string): string {
  const lines = text.split('\n').map((line) => {
    const [before = ''] = /^ *(?:\d {2})?/.exec(line) ?? []
    return before + wrapped(line.slice(before.length), before.length, WIDTH)
  })
  return lines.join('\n')
}

/** A number with its noun: `1 grant`, `2 grants`. */
export function counted(number: number, what: string): string {
  return `${number} ${number === 1 ? what : `${what}s`}`
}
