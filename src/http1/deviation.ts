import { isToken, withoutBlanks } from '../http/fields.ts'

/** Why only the tolerant rules accept a response. It may be logged: letters and digits that could be a secret are masked by `x`. */
export interface Deviation {
  /** The fault, as a noun with its article. */
  readonly fault: string
  /** The bytes around it, escaped, at most 76 characters: a terminal line with its indent. */
  readonly bytes: string
}

/** The deviation as one line of text. */
export function describeDeviation({ fault, bytes }: Deviation): string {
  return `${fault}: "${bytes}"`
}

/** The most characters of `bytes`, and how many of them stand before the fault. */
const SHOWN = 76
const BEFORE = 38

/** The fields whose values are shown. Any other value may be a secret: `Set-Cookie`, `Authorization`, a token in `Location`. */
const SHOWN_VALUES: ReadonlySet<string> = new Set([
  'content-length',
  'content-type',
  'connection',
  'transfer-encoding',
])

const STATUS_LINE = /^HTTP\/1\.[01] [1-9]\d\d(?: [\t -~\x80-\xff]*)?$/
/** A status line that cannot contain a secret: version, status, and a reason phrase of words. */
const HARMLESS = /^HTTP\/[\d.]+[ \t]+\d{3}(?:[ \t]+[a-z -]*)?[\r\n]*$/i
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds the control characters that a device sends
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/

/** The first deviation in a response head. `text`: in Latin-1, with its line ends. */
export function headDeviation(text: string): Deviation {
  const lines = text.split(/(?<=\n)/)
  for (const [i, line] of lines.entries()) {
    const [fault, at] = i === 0 ? statusFault(line) : fieldFault(line)
    if (fault !== '') return { fault, bytes: around(masked(line), at) }
  }
  const framing = lines.filter((line) => /^(?:content-length|transfer-encoding):/i.test(line))
  if (framing.length === 0)
    return { fault: 'a head that the strict rules refuse', bytes: around(masked(lines[0] ?? ''), 0) }
  return {
    fault: 'a length or transfer coding that is not certain',
    bytes: around(framing.map(masked).join(''), 0),
  }
}

/** A deviation in a chunked body. `text`: in Latin-1. Only a chunk size at its start is shown, because the rest may be data. */
export function chunkDeviation(fault: string, text: string): Deviation {
  const size = /^[ \t]*(?:0x)?[0-9a-f]{1,8}(?=[ \t;\r\n])/i.exec(text)?.[0] ?? ''
  return { fault, bytes: around(size + hidden(text.slice(size.length)), 0) }
}

type Fault = readonly [fault: string, at: number]
const NONE: Fault = ['', 0]

function lineEndFault(line: string): Fault {
  if (!line.endsWith('\r\n')) return ['a line that ends with LF alone', line.length]
  return line.endsWith('\r\r\n') ? ['a line that ends with CR CR LF', line.length] : NONE
}

function statusFault(line: string): Fault {
  const text = line.replace(/\r*\n$/, '')
  return STATUS_LINE.test(text) ? lineEndFault(line) : ['a status line that is not that of HTTP/1.1', 0]
}

function fieldFault(line: string): Fault {
  const end = lineEndFault(line)
  if (end !== NONE || line === '\r\n') return end
  if (/^[ \t]/.test(line)) return ['a folded line', 0]
  const colon = line.indexOf(':')
  if (colon < 0) return ['a line without a colon', 0]
  const name = line.slice(0, colon)
  if (!isToken(name)) {
    const isBlank = isToken(withoutBlanks(name))
    return [isBlank ? 'a blank before a colon' : 'a character that no field name may have', colon]
  }
  const control = line.slice(0, -2).search(CONTROL)
  return control < 0 ? NONE : ['a control character in a value', control]
}

/** A field name of words. Any other name is masked, because the line may begin in the middle of a value. */
const NAME = /^[a-z]+(?:-[a-z]+)*$/i

/** The words of a value, with the colon before them. Anything behind them is masked: if a line end is missing, it may be the next field. */
const WORDS = /^:[ \t]*(?:[\w.+*-]+(?:[ \t]*[,;/][ \t]*[\w.+*-]+)*)?/

/** A line of a head, with possible secrets masked. */
function masked(line: string): string {
  if (HARMLESS.test(line)) return line
  const colon = line.indexOf(':')
  const name = withoutBlanks(line.slice(0, Math.max(colon, 0)))
  if (!NAME.test(name) || /^[ \t]/.test(line)) return hidden(line)
  const value = line.slice(colon)
  const shown = SHOWN_VALUES.has(name.toLowerCase()) ? (WORDS.exec(value)?.[0] ?? '') : ''
  return line.slice(0, colon) + shown + hidden(value.slice(shown.length))
}

function hidden(text: string): string {
  return text.replace(/[0-9a-z\x80-\xff]/gi, 'x')
}

/** The text around a position, escaped, at most `SHOWN` characters. */
function around(text: string, at: number): string {
  const from = text.length <= SHOWN ? 0 : Math.max(0, at - BEFORE)
  let shown = ''
  for (const character of text.slice(from)) {
    const escaped = readable(character)
    if (shown.length + escaped.length > SHOWN) break
    shown += escaped
  }
  return shown
}

const ESCAPES: Readonly<Record<string, string>> = { '\r': '\\r', '\n': '\\n', '\t': '\\t', '\\': '\\\\' }

function readable(character: string): string {
  const code = character.charCodeAt(0)
  const isPlain = code >= 0x20 && code < 0x7f
  return ESCAPES[character] ?? (isPlain ? character : `\\x${code.toString(16).padStart(2, '0')}`)
}
