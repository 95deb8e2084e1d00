/** Blanks that YAML takes for text. They look like a blank, or like nothing: a word processor or a web page has put them there. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['\u00a0', 'a no-break space'],
  ['\u200b', 'a zero-width space'],
  ['\u202f', 'a narrow no-break space'],
  ['\u3000', 'an ideographic space'],
  ['\ufeff', 'a byte order mark'],
])

const CLASS = String.raw`[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000\ufeff]`

export const ODD_BLANKS: RegExp = new RegExp(CLASS, 'g')

/** Where a blank was meant: at an end of a text without quotes, or behind its first colon. */
const AT_AN_END = new RegExp(`^${CLASS}|${CLASS}$|(?<=^[\\w-]+:)${CLASS}`)

/** The same in a line: beside a blank, a mark of YAML or a line end. */
const IN_LINE = new RegExp(`(?<=^|[\\s:,{[-])${CLASS}|${CLASS}(?=$|[\\s:,}\\]#])`)

/** Where an odd blank stands in a key, which has none; -1 if there is none. */
export const oddBlankInKey = (key: string): number => key.search(new RegExp(CLASS))

/** Where an odd blank stands in place of a blank in a text without quotes; -1 if there is none. */
export const oddBlankInText = (text: string): number => text.search(AT_AN_END)

/** Where an odd blank stands in place of a blank in a line that is not valid YAML; -1 if there is none. A comment may have any. */
export const oddBlankInLine = (line: string): number => line.replace(/(?:^|[ \t])#.*$/, '').search(IN_LINE)

/** What to say of the odd blank at `at`. */
export function oddBlankProblem(text: string, at: number): string {
  const blank = text[at] ?? ''
  const code = `U+${blank.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
  return `${NAMES.get(blank) ?? 'an unusual blank'} (${code}) stands here, which YAML takes for text; type a blank instead`
}
