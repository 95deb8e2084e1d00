/** Undoes one encoding wherever a text has it, and leaves the rest. */
type Decoder = (text: string) => string

const percent: Decoder = (text) =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, (run) => utf8Or(Buffer.from(run.replaceAll('%', ''), 'hex')))

/** The escapes of a JSON string. `\b` and the like stand for no character of a password. */
const json: Decoder = (text) =>
  text.replace(/\\(?:u([0-9a-f]{4})|(["\\/]))/gi, (_all, hex?: string, escaped?: string) =>
    hex === undefined ? (escaped ?? '') : String.fromCharCode(Number.parseInt(hex, 16)),
  )

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
}

const html: Decoder = (text) =>
  text.replace(
    /&(?:#x([0-9a-f]{1,6})|#([0-9]{1,7})|(amp|lt|gt|quot|apos|nbsp));/gi,
    (all, hex?: string, decimal?: string, name?: string) => {
      if (name !== undefined) return NAMED[name.toLowerCase()] ?? all
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
      return code <= 0x10ffff ? String.fromCodePoint(code) : all
    },
  )

/** UTF-8 in a header field, which Node reads as Latin-1. */
const latin1: Decoder = (text) => text.replace(/[\x80-\xff]+/g, (run) => utf8Or(Buffer.from(run, 'latin1')))

function utf8Or(bytes: Buffer): string {
  const text = bytes.toString()
  return text.includes('\ufffd') ? bytes.toString('latin1') : text
}

const DECODERS: readonly Decoder[] = [
  percent,
  (text) => percent(text.replaceAll('+', ' ')),
  json,
  html,
  latin1,
]

/** A form in JSON, or JSON in a header field: more encodings on top of each other are no accident. */
const DEPTH = 2

/** A text without these is not encoded. */
const ENCODED = /[%\\&+\x80-\xff]/

/** Tests whether a text shows another one, in any usual encoding. The encodings are undone once for all tests. */
export function shownBy(text: string): (sought: string) => boolean {
  const readings = [...readingsOf(text)]
  return (sought) => readings.some((reading) => reading.includes(sought))
}

/** The text itself, and everything that it says when URL, form, JSON and HTML encodings are undone, up to two of them. */
function readingsOf(text: string): ReadonlySet<string> {
  const readings = new Set([text])
  let latest: readonly string[] = ENCODED.test(text) ? [text] : []
  for (let depth = 0; depth < DEPTH; depth += 1) {
    const decoded = latest.flatMap((each) => DECODERS.map((decode) => decode(each)))
    latest = [...new Set(decoded)].filter((each) => !readings.has(each))
    for (const each of latest) readings.add(each)
  }
  return readings
}

/** The place of a text in another one: from `start` up to, not including, `end`. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** Of a text up to this length (characters), a place that overlaps one of its beginnings is found too. It costs a second search. */
const LONGEST_WHOLE = 128

/** Finds a text, and its beginnings that have at least `stem` in them, in each mixture of the encodings that `readingsOf` undoes. */
export function createFinder(text: string, stem: string): (within: string) => readonly Span[] {
  const whole = text.length <= LONGEST_WHOLE ? new RegExp(encoded(text), 'g') : undefined
  const first = new RegExp(encoded(stem), 'g')
  const rest = [...text.slice(stem.length)].map((character) => new RegExp(encodedCharacter(character), 'y'))

  function endOfBeginning(within: string, from: number): number {
    let end = from
    for (const next of rest) {
      next.lastIndex = end
      if (!next.test(within)) break
      end = next.lastIndex
    }
    return end
  }

  function beginnings(within: string): readonly Span[] {
    const spans: Span[] = []
    first.lastIndex = 0
    for (let match = first.exec(within); match !== null; match = first.exec(within)) {
      first.lastIndex = endOfBeginning(within, first.lastIndex)
      spans.push({ start: match.index, end: first.lastIndex })
    }
    return spans
  }

  return (within) => {
    const wholes = [...(whole === undefined ? [] : within.matchAll(whole))].map(
      ({ 0: { length }, index }) => ({
        start: index,
        end: index + length,
      }),
    )
    return [...wholes, ...beginnings(within)]
  }
}

/**
 * What base64 and base64url show of a text, whatever bytes are before and after it: one form for each of the three places that its
 * first byte may have in a group, without the characters that it shares with other bytes. Of the beginning of a text, each form is
 * the beginning of the form of the text.
 */
export function base64Forms(text: string): readonly string[] {
  const bytes = Buffer.from(text)
  return (['base64', 'base64url'] as const).flatMap((alphabet) =>
    [0, 1, 2].map((before) =>
      Buffer.concat([Buffer.alloc(before), bytes])
        .toString(alphabet)
        .slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6)),
    ),
  )
}

/** These begin an encoding, so that one of them may be read in two ways, and a row of them in very many. */
const AMBIGUOUS: ReadonlySet<string> = new Set(['\\', '%', '&'])

/**
 * A pattern of the text itself, and of its encodings. An ambiguous character is read in one way only, by an atomic group: otherwise
 * a hostile text could make the search exponentially slow. What is not found so is still in a reading of `readingsOf`.
 */
function encoded(text: string): string {
  let groups = 0
  const characters = [...text].map((character) => {
    const pattern = encodedCharacter(character)
    if (!AMBIGUOUS.has(character)) return pattern
    groups += 1
    return `(?=(${pattern}))\\${groups}(?:)`
  })
  return `(?:${literal(text)}|${characters.join('')})`
}

/** The alternatives begin with different characters, or are bounded, so that no text makes the pattern slow. */
function encodedCharacter(character: string): string {
  const bytes = Buffer.from(character)
  const code = character.codePointAt(0) ?? 0
  const percents = (each: Buffer): string =>
    [...each].map((byte) => `%(?:25)?${anyCase(hex(byte, 2))}`).join('')
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i))
  const names = Object.keys(NAMED).filter((name) => NAMED[name] === character)
  const entities = [...names.map(anyCase), `#0*${code}`, `#[xX]0*${anyCase(code.toString(16))}`]
  return `(?:${[
    percents(bytes),
    ...(code > 0x7f && code <= 0xff
      ? [percents(Buffer.from([code])), literal(bytes.toString('latin1'))]
      : []),
    ...(code > 0xff ? [literal(bytes.toString('latin1'))] : []),
    units.map((unit) => `\\\\{1,2}u${anyCase(hex(unit, 4))}`).join(''),
    `&(?:amp;)?(?:${entities.join('|')});`,
    ...(character === ' ' ? ['\\+'] : []),
    `\\\\{0,3}${literal(character)}`,
  ].join('|')})`
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}

function anyCase(text: string): string {
  return text.replace(/[a-z]/gi, (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`)
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
