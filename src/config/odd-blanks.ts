/** Blanks that YAML takes for text. They look like a usual blank or are invisible, and come from word processors and web pages. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['\u00a0', 'a no-break space'],
  ['\u200b', 'a zero-width space'],
  ['\u202f', 'a narrow no-break space'],
  ['\u3000', 'an ideographic space'],
  ['\ufeff', 'a byte order mark'],
])

const CLASS = String.raw`[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000\ufeff]`

export const ODD_BLANKS: RegExp = new RegExp(CLASS, 'g')

/** An odd blank that stands for a blank in a text without quotes: at one of its ends, or behind its first colon. */
const AT_AN_END = new RegExp(`^${CLASS}|${CLASS}$|(?<=^[\\w-]+:)${CLASS}`)

/** An odd blank that stands for a blank in a line: beside a blank, a mark of YAML or a line end. */
const IN_LINE = new RegExp(`(?<=^|[\\s:,{[-])${CLASS}|${CLASS}(?=$|[\\s:,}\\]#])`)

/** The position of an odd blank in a key, which may have none; -1 without one. */
export const oddBlankInKey = (key: string): number => key.search(new RegExp(CLASS))

/** The position of an odd blank that stands for a blank, in a text without quotes; -1 without one. */
export const oddBlankInText = (text: string): number => text.search(AT_AN_END)

/** The position of an odd blank that stands for a blank, in a line that is not valid YAML; -1 without one. Comments may have odd blanks. */
export const oddBlankInLine = (line: string): number => line.replace(/(?:^|[ \t])#.*$/, '').search(IN_LINE)

/** The message about the odd blank at `at`. */
export function oddBlankProblem(text: string, at: number): string {
  const blank = text[at] ?? ''
  const code = `U+${blank.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
  return `${NAMES.get(blank) ?? 'an unusual blank'} (${code}) stands here, which YAML takes for text; type a blank instead`
}
