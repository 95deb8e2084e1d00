import { STATUS_CODES } from 'node:http'
import type { ResponseHead } from '../http/exchange.ts'
import { type Fields, isToken, lengthIn } from '../http/fields.ts'

/** A status, reason phrase or field that is not allowed in an HTTP/1 head. */
export class UnsendableHeadError extends Error {
  override readonly name = 'UnsendableHeadError'
}

/** Where a response ends (RFC 9112 §6.3): with its head, after this many bytes, with its last chunk, or with the connection. */
export type ResponseFraming = 'none' | 'chunked' | 'close' | number

/** The properties of the request and the connection that a response head depends on. */
export interface ResponseFacts {
  readonly method: string
  /** The client speaks HTTP/1.0. It does not support chunks, so a body without a length ends with the connection. */
  readonly oldClient: boolean
  /** The field lines that keep the connection open, with their line ends. Undefined: the connection closes after this response. */
  readonly keepAliveFields: string | undefined
  /** The `Date` line, with its line end. */
  readonly date: string
  /** The sidecar's own field lines, which follow those of the response: rate-limit fields (C16), the request id (C22). */
  readonly own: string
}

export interface RenderedHead {
  /** In Latin-1, with the empty line at the end. */
  readonly text: string
  readonly framing: ResponseFraming
  readonly persists: boolean
}

/** Whether a response has no body regardless of its fields (RFC 9112 §6.3). */
export function endsWithHead(method: string, status: number): boolean {
  return method === 'HEAD' || status < 200 || status === 204 || status === 304
}

const NO_TEXT = /[^\t -~\x80-\xff]/

/**
 * Writes the head of a final response: its fields unchanged, `Date` if it is missing, and the fields of the connection and the
 * framing, which only the sidecar sets. `size`: the length of the body (bytes), if it is known. Throws `UnsendableHeadError`.
 */
export function renderHead(
  head: ResponseHead,
  size: number | undefined,
  { method, oldClient, keepAliveFields, date, own }: ResponseFacts,
): RenderedHead {
  const { text, length, dated } = head.reusable === true ? renderedOnce(head) : renderFirst(head)
  const bodiless = endsWithHead(method, head.status)
  const counted = length ?? size
  const framing = bodiless ? 'none' : (counted ?? (oldClient ? 'close' : 'chunked'))
  const connection = oldClient && counted === undefined ? undefined : keepAliveFields
  const framed =
    framing === 'chunked'
      ? 'Transfer-Encoding: chunked\r\n'
      : length === undefined && typeof framing === 'number'
        ? `Content-Length: ${framing}\r\n`
        : ''
  return {
    text: `${text}${own}${dated ? '' : date}${connection ?? 'Connection: close\r\n'}${framed}\r\n`,
    framing,
    persists: connection !== undefined,
  }
}

/** The rendered fields of heads that are sent again: see `ResponseHead.reusable`. */
const renderedBefore = new WeakMap<ResponseHead, RenderedFields>()

function renderedOnce(head: ResponseHead): RenderedFields {
  const known = renderedBefore.get(head)
  if (known !== undefined) return known
  const rendered = renderFirst(head)
  renderedBefore.set(head, rendered)
  return rendered
}

function renderFirst({
  status,
  reason = STATUS_CODES[status] ?? 'unknown',
  fields,
}: ResponseHead): RenderedFields {
  const line = statusLine(status, reason)
  const rendered = renderFields(fields)
  rendered.text = line + rendered.text
  return rendered
}

/** Writes an interim response (RFC 9110 §15.2). Throws `UnsendableHeadError`, also for `101`: it ends HTTP on the connection. */
export function renderInterim(status: number, fields: Fields): string {
  if (status < 100 || status > 199 || status === 101)
    throw new UnsendableHeadError(`${status} is not an interim status`)
  return `${statusLine(status, STATUS_CODES[status] ?? 'unknown')}${renderFields(fields).text}\r\n`
}

function statusLine(status: number, reason: string): string {
  if (!(status >= 100 && status <= 999)) throw new UnsendableHeadError(`${status} is not a status`)
  if (NO_TEXT.test(reason)) throw new UnsendableHeadError('the reason phrase contains a control character')
  return `HTTP/1.1 ${status} ${reason}\r\n`
}

interface RenderedFields {
  text: string
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
    if (NO_TEXT.test(value))
      throw new UnsendableHeadError(`the value of ${name} contains a character that HTTP/1 does not allow`)
    text += `${name}: ${value}\r\n`
    switch (name.length) {
      case 4:
        if (name.toLowerCase() === 'date') dated = true
        break
      case 14:
        if (name.toLowerCase() !== 'content-length') break
        if (length !== undefined || lengthIn(value) === undefined)
          throw new UnsendableHeadError('Content-Length is repeated or not a number')
        length = Number(value)
    }
  }
  return { text, length, dated }
}

/** The names that passed `checkName`, so that each is checked once: responses use few different names. */
const seenNames = new Set<string>()
const MOST_SEEN = 500

const OURS: ReadonlySet<string> = new Set(['connection', 'transfer-encoding'])

function checkName(name: string): void {
  if (seenNames.has(name)) return
  if (!isToken(name)) throw new UnsendableHeadError('a field name is not a token')
  if (OURS.has(name.toLowerCase())) throw new UnsendableHeadError(`only the sidecar sets ${name}`)
  if (seenNames.size < MOST_SEEN) seenNames.add(name)
}

/** The UTF-8 bytes of a text, each as one Latin-1 character. */
export function latin1Of(text: string): string {
  const size = Buffer.byteLength(text)
  return size === text.length ? text : Buffer.from(text).toString('latin1')
}
