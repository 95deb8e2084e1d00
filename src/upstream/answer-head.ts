import { fieldValues } from '../http/fields.ts'

/** The head of an answer as it stands on the wire, every byte a character; names and values alternate. */
export interface AnswerHead {
  readonly status: number
  readonly reason: string
  readonly fields: string[]
  /** The device will read another request from this connection. */
  readonly keepsAlive: boolean
}

/** Whether an answer has no body, whatever its fields say (RFC 9112 §6.3). */
export function endsWithHead(method: string, status: number): boolean {
  return method === 'HEAD' || status < 200 || status === 204 || status === 304
}

/**
 * How many bytes of the body stand behind the head without framing among them: its length; 0 for a body in chunks, or none
 * after a transfer coding; infinity for a body that only the end of the connection ends. Undefined where the end of the body
 * is not certain: a transfer coding other than chunked (RFC 9112 §6.1), or a length above 2^53.
 */
export function plainLength({ status, fields }: AnswerHead, method: string): number | undefined {
  const codings = fieldValues(fields, 'transfer-encoding')
  if (codings.length > 0) {
    const known = codings.length === 1 && codings[0]?.toLowerCase() === 'chunked'
    return known || endsWithHead(method, status) ? 0 : undefined
  }
  const [length] = fieldValues(fields, 'content-length')
  if (length === undefined) return Number.POSITIVE_INFINITY
  return Number.isSafeInteger(Number(length)) ? Number(length) : undefined
}

const VERSION = /^[\r\n]*HTTP\/1\.[01] /
const NO_REASON = /^[\r\n]*HTTP\/1\.[01] \d{3} *\r\n/
// biome-ignore lint/suspicious/noControlCharactersInRegex: these must not stand in a reason (RFC 9112 §4)
const CONTROL = /[\x00-\x08\x0a-\x1f\x7f]/

/**
 * Whether what llhttp accepted as a status line is one (RFC 9112 §4). It also accepts other versions, any bytes as a reason,
 * any two CR or LF as the end of the line, and tabs between the parts, because `Llhttp` shows it spaces for tabs. The reason
 * is `text` from `start` to `end`; `end` is 0 where there is none.
 */
export function isStatusLine(text: string, start: number, end: number): boolean {
  if (!text.startsWith('HTTP/1.1 ') && !VERSION.test(text)) return false
  if (end === 0) return NO_REASON.test(text)
  return text[start - 1] === ' ' && text[end + 1] !== '\r' && !CONTROL.test(text.slice(start, end))
}
