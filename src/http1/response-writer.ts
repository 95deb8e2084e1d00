import { STATUS_CODES } from 'node:http'
import type { ResponseHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import { endsWithHead } from './response-head.ts'

/** A status, reason or field that a head of HTTP/1 cannot carry. */
export class UnsendableHeadError extends Error {
  override readonly name = 'UnsendableHeadError'
}

/** How the end of a response is told (RFC 9112 §6.3): by its head alone, a count of bytes, chunks, or the connection's end. */
export type ResponseFraming = 'none' | 'chunked' | 'close' | number

/** What is known of a response beside its own fields. */
export interface ResponseFacts {
  readonly method: string
  /** HTTP/1.0: knows no chunks, and keeps no connection on a body without a length. */
  readonly oldClient: boolean
  /** What says that the connection may carry another request behind this response, if it may. With line ends. */
  readonly persisting: string | undefined
  readonly date: string
}

export interface RenderedHead {
  /** Latin-1, up to the blank line and with it. */
  readonly text: string
  readonly framing: ResponseFraming
  readonly persists: boolean
}

const NO_TOKEN = /[^!#$%&'*+\-.^_`|~0-9A-Za-z]/
const NO_TEXT = /[^\t -~\x80-\xff]/
const DIGITS = /^[0-9]+$/

/**
 * Writes the head of a final response: its fields as they are, then `Date` if the device did not send its own, and those
 * of the connection and the framing, which are ours alone. `size` is that of the body (bytes) where it is known already.
 */
export function renderHead(
  { status, reason, fields }: ResponseHead,
  size: number | undefined,
  { method, oldClient, persisting, date }: ResponseFacts,
): RenderedHead {
  const { text, length, dated } = renderFields(fields)
  const bodiless = endsWithHead(method, status)
  const counted = length ?? size
  const framing = bodiless ? 'none' : (counted ?? (oldClient ? 'close' : 'chunked'))
  const connection = oldClient && counted === undefined ? undefined : persisting
  const framed =
    framing === 'chunked'
      ? 'Transfer-Encoding: chunked\r\n'
      : length === undefined && typeof framing === 'number'
        ? `Content-Length: ${framing}\r\n`
        : ''
  return {
    text: `${statusLine(status, reason)}${text}${dated ? '' : date}${connection ?? 'Connection: close\r\n'}${framed}\r\n`,
    framing,
    persists: connection !== undefined,
  }
}

/** An interim response (RFC 9110 §15.2), whole. `101` is none: it ends HTTP on its connection. */
export function renderInterim(status: number, fields: Fields): string {
  if (status < 100 || status > 199 || status === 101)
    throw new UnsendableHeadError(`no interim status: ${status}`)
  return `${statusLine(status, STATUS_CODES[status] ?? 'unknown')}${renderFields(fields).text}\r\n`
}

function statusLine(status: number, reason: string): string {
  if (!(status >= 100 && status <= 999)) throw new UnsendableHeadError(`no status: ${status}`)
  if (NO_TEXT.test(reason)) throw new UnsendableHeadError('a reason that is no text')
  return `HTTP/1.1 ${status} ${reason}\r\n`
}

interface RenderedFields {
  readonly text: string
  /** What `Content-Length` says. */
  readonly length: number | undefined
  readonly dated: boolean
}

function renderFields(fields: Fields): RenderedFields {
  let text = ''
  let length: number | undefined
  let dated = false
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    checkName(name)
    if (NO_TEXT.test(value)) throw new UnsendableHeadError('a field that is none')
    text += `${name}: ${value}\r\n`
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'date') dated = true
        break
      case 14:
        if (name.toLowerCase() === 'content-length') length = lengthOf(value, length)
    }
  }
  return { text, length, dated }
}

/** Names that may be sent: the few that come again and again are looked at once. */
const seenNames = new Set<string>()
const MOST_SEEN = 500

const OURS: ReadonlySet<string> = new Set(['connection', 'transfer-encoding'])

function checkName(name: string): void {
  if (seenNames.has(name)) return
  if (name === '' || NO_TOKEN.test(name)) throw new UnsendableHeadError('a field that is none')
  if (OURS.has(name.toLowerCase())) throw new UnsendableHeadError(`a field of the connection: ${name}`)
  if (seenNames.size < MOST_SEEN) seenNames.add(name)
}

function lengthOf(value: string, before: number | undefined): number {
  const length = DIGITS.test(value) ? Number(value) : Number.NaN
  if (!Number.isSafeInteger(length) || before !== undefined)
    throw new UnsendableHeadError('a length that is none')
  return length
}

/** A text whose characters are the bytes of another one in UTF-8. */
export function latin1Of(text: string): string {
  const size = Buffer.byteLength(text)
  return size === text.length ? text : Buffer.from(text).toString('latin1')
}
