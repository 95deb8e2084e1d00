const ESCAPES: Readonly<Record<string, string>> = { t: '\t', r: '\r', n: '\n', 0: '\0' }

/**
 * The lines of a template, each a row of a table of texts. `\t`, `\r`, `\n`, `\0` and `\xe4` are these bytes, `␣` is a space at the
 * begin or the end of a row, `∅` an empty row.
 */
export function rows({ raw: [text = ''] }: TemplateStringsArray): string[] {
  const lines = text.split('\n').map((line) => line.trim())
  return lines.filter((line) => line !== '').map(decoded)
}

function decoded(line: string): string {
  const spaced = line.replaceAll('␣', ' ').replace(/^∅$/, '')
  return spaced.replace(/\\(?:x([\da-f]{2})|([trn0\\]))/g, (_, hex: string | undefined, letter: string) =>
    hex === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(hex, 16)),
  )
}
