import { oddBlankInLine, oddBlankProblem } from './odd-blanks.ts'

/** Messages by the parser's error codes. The parser's own messages quote the source, which may hold a secret. */
const FAULTS: Readonly<Record<string, string>> = {
  BAD_DQ_ESCAPE: 'an unknown escape in a quoted text; write \\\\ for a backslash, or use single quotes',
  BAD_INDENT: 'the indentation is wrong, or a bracket is not closed',
  BAD_SCALAR_START: 'a value must not begin with this character; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'an unexpected colon; put the value in quotes, or its keys on lines of their own',
  MISSING_CHAR: 'a closing quote, a comma, a colon or a bracket is missing',
  MULTILINE_IMPLICIT_KEY: 'a key without a colon, or with a line end in it',
  MULTIPLE_DOCS: 'a second document begins; keep everything in one',
  NON_STRING_KEY: 'a key must be text',
  RESOURCE_EXHAUSTION: 'it is nested too deeply',
  TAB_AS_INDENT: 'a tab in the indentation; use spaces',
  TAG_RESOLVE_FAILED: 'a tag, which is not allowed here; write the value without it',
}

/** The codes that a missing blank, a missing quote or a line with too deep an indentation cause. */
const INDIRECT: ReadonlySet<string> = new Set([
  'BAD_INDENT',
  'BLOCK_AS_IMPLICIT_KEY',
  'MISSING_CHAR',
  'MULTILINE_IMPLICIT_KEY',
  'UNEXPECTED_TOKEN',
])

/** A fault of a text: a clause that describes it, and its offset. */
interface Fault {
  readonly what: string
  readonly at: number
}

/** A key with its value directly behind the colon. */
const GLUED = /^(?:- +)?([a-z][\w-]{0,40}):(?=[^\s])/i

/** The key of a text such as `upstream:{url`, in which YAML sees no colon; undefined for another text. */
export function gluedKey(text: string): string | undefined {
  return GLUED.exec(text)?.[1]
}

/**
 * Explains an error of the parser by its cause, which may stand in an earlier or a later line than the one at which the parser stops.
 * It quotes nothing but a key or an IP address.
 *
 * @param at the offset at which the parser stops
 * @param lexemes the lexer's pieces of the text, read only as far as needed
 */
export function explainFault(text: string, code: string, at: number, lexemes: Iterable<string>): Fault {
  const indirect = INDIRECT.has(code)
    ? (unclosedQuote(text, at, lexemes) ?? gluedLine(text, at) ?? deeperLine(text, at))
    : undefined
  return (
    oddBlank(text, at) ??
    bareAddress(text, at) ??
    indirect ?? { what: FAULTS[code] ?? 'is not valid YAML', at }
  )
}

/** Zero-width marks that the lexer adds. */
const MARKS: ReadonlySet<string> = new Set(['\u{2}', '\u{18}', '\u{1f}'])

/** The fault of a quoted text that is never closed, or only in the line of the error: there the quote most likely opens the next text. */
function unclosedQuote(text: string, at: number, lexemes: Iterable<string>): Fault | undefined {
  let start = 0
  for (const lexeme of lexemes) {
    if (MARKS.has(lexeme)) continue
    const end = start + lexeme.length
    const quote = lexeme[0]
    if (quote === '"' || quote === "'") {
      const isOpen = lexeme.length === 1 || !lexeme.endsWith(quote)
      const endsHere = lexeme.includes('\n') && !text.slice(end, at).includes('\n')
      if (end <= at && (endsHere || (isOpen && end === at)))
        return { what: 'the quote that opens here is not closed', at: start }
    }
    if (start > at) return undefined
    start = end
  }
  return undefined
}

function oddBlank(text: string, at: number): Fault | undefined {
  const start = text.lastIndexOf('\n', at - 1) + 1
  const [line = ''] = /.*/.exec(text.slice(start)) ?? []
  const blank = oddBlankInLine(line)
  return blank < 0 ? undefined : { what: oddBlankProblem(text, start + blank), at: start + blank }
}

/** An IPv6 address with a port: to YAML, its bracket begins a list. */
const BARE_ADDRESS = /(?<=[:,{[-]\s+|^\s*)\[[\da-f:.]*:[\da-f:.]*(?:%[\w.-]+)?\]:\d+/i

function bareAddress(text: string, at: number): Fault | undefined {
  const start = text.lastIndexOf('\n', at - 1) + 1
  const found = BARE_ADDRESS.exec(lineFrom(text, start))
  if (found === null) return undefined
  return { what: `an IPv6 address in brackets needs quotes: write "${found[0]}"`, at: start + found.index }
}

function gluedLine(text: string, at: number): Fault | undefined {
  const start = text.lastIndexOf('\n', at - 1) + 1
  const line = lineFrom(text, start)
  const indentation = indentationOf(line)
  const key = gluedKey(line.slice(indentation))
  if (key === undefined) return undefined
  return {
    what: `a blank is missing behind \`${key}:\``,
    at: start + line.indexOf(`${key}:`) + key.length + 1,
  }
}

/** The fault of a key that stands deeper than a line with a value: in the line of the error or the next one. */
function deeperLine(text: string, at: number): Fault | undefined {
  const start = text.lastIndexOf('\n', at - 1) + 1
  const [above, below] = [significantBefore(text, start), significantAfter(text, start)]
  const here = { start, line: lineFrom(text, start) }
  const pairs: readonly (readonly [upper: Line | undefined, lower: Line | undefined])[] = isSignificant(here)
    ? [
        [here, below],
        [above, here],
      ]
    : [[above, below]]
  for (const [upper, lower] of pairs) {
    if (upper === undefined || lower === undefined) continue
    const indentation = indentationOf(lower.line)
    const isDeeper =
      indentation > indentationOf(upper.line) && /^(?:- +)?[\w-]+:(?:\s|$)|^- /.test(lower.line.trimStart())
    if (!isDeeper || !/:\s+[^\s#&]|^\s*- +[^\s:]+$/.test(upper.line)) continue
    return {
      what: 'this line is indented deeper than the one above, which has a value already; begin both in the same column',
      at: lower.start + indentation,
    }
  }
  return undefined
}

interface Line {
  readonly start: number
  readonly line: string
}

const isSignificant = ({ line }: Line): boolean => /^\s*[^\s#]/.test(line)

function significantAfter(text: string, start: number): Line | undefined {
  for (let at = text.indexOf('\n', start) + 1; at > 0; at = text.indexOf('\n', at) + 1) {
    const found = { start: at, line: lineFrom(text, at) }
    if (isSignificant(found)) return found
  }
  return undefined
}

function significantBefore(text: string, start: number): Line | undefined {
  for (let end = start - 1; end > 0; ) {
    const at = text.lastIndexOf('\n', end - 1) + 1
    const found = { start: at, line: text.slice(at, end) }
    if (isSignificant(found)) return found
    end = at - 1
  }
  return undefined
}

function lineFrom(text: string, start: number): string {
  const end = text.indexOf('\n', start)
  return text.slice(start, end === -1 ? undefined : end).trimEnd()
}

const indentationOf = (line: string): number => line.length - line.trimStart().length
