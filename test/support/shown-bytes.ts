import type { Refusal } from '../../src/http/refusal.ts'

const ESCAPES: Readonly<Record<string, string>> = { r: '\r', n: '\n', t: '\t', '\\': '\\' }

/**
 * The bytes that a text shows: `\r`, `\n`, `\t`, `\\` and `\x00` to `\xff` are one byte each. A line break means nothing.
 * @throws Error for any other backslash, and for text that is not ASCII
 */
export function bytesOf(text: string): Buffer {
  const odd = /[^\n\x20-\x7e]/.exec(text)
  if (odd !== null) throw new Error(`write ${JSON.stringify(odd[0])} as its bytes: \\x00 to \\xff`)
  const raw = text.replaceAll('\n', '').replaceAll(/\\(?:x([0-9a-f]{2})|(.?))/g, (found, hex, letter) => {
    const byte = hex === undefined ? ESCAPES[letter] : String.fromCharCode(Number.parseInt(hex, 16))
    if (byte === undefined)
      throw new Error(`${found} is no byte: write \\r, \\n, \\t, \\\\ or \\x00 to \\xff`)
    return byte
  })
  return Buffer.from(raw, 'latin1')
}

/** Latin-1 text in this notation. */
export function shownBytes(text: string): string {
  return text.replaceAll(/[^\x20-\x5b\x5d-\x7e]/g, (byte) => {
    const letter = Object.keys(ESCAPES).find((each) => ESCAPES[each] === byte)
    return `\\${letter ?? `x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`}`
  })
}

/** The fields that lines show, as `Name: value` each. */
export function fieldsOf(lines: string): readonly string[] {
  if (lines === '') return []
  return lines.split('\n').flatMap((line) => {
    const field = bytesOf(line).toString('latin1')
    const colon = field.indexOf(':')
    return [field.slice(0, colon), field.slice(colon + 1).replace(/^ /, '')]
  })
}

/** A refusal as the cases show it: its kind, and its sentence or the methods that it allows. */
export function refusalText(refusal: Refusal): string {
  if ('description' in refusal) return `${refusal.kind}: ${refusal.description}`
  return 'allow' in refusal ? `${refusal.kind}: ${refusal.allow}` : refusal.kind
}
