const ESCAPES: Readonly<Record<string, string>> = { t: '\t', r: '\r', n: '\n', 0: '\0' }

/**
 * The rows of a table of texts: each ends with two blanks or with its line. `\t`, `\r`, `\n`, `\0`, `\xe4` and `\\` are these bytes, `␣` is
 * a space where a plain one would end the row, `∅` an empty row.
 */
export function rows({ raw: [text = ''] }: TemplateStringsArray): string[] {
  return text
    .trim()
    .split(/ {2,}|\s*\n\s*/)
    .map(decoded)
}

function decoded(row: string): string {
  const spaced = row.replaceAll('␣', ' ').replace(/^∅$/, '')
  return spaced.replace(/\\(?:x([\da-f]{2})|([trn0\\]))/g, (_, hex: string | undefined, letter: string) =>
    hex === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(hex, 16)),
  )
}
