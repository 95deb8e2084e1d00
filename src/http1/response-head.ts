import { connectionMembers, type Fields, lengthIn, persists } from '../http/fields.ts'
import { endsWithHead } from './response-writer.ts'

/** Where a response body ends (RFC 9112 §6.3): after this many bytes, with its last chunk, or with the connection. */
type ResponseBodyFraming = number | 'chunked' | 'end'

/** A response head as it is on the wire, in Latin-1. */
export interface ResponseHeadText {
  readonly version: '1.0' | '1.1'
  /** Three digits. */
  readonly status: string
  readonly reason: string
  readonly fields: Fields
}

/** A parsed response head in Latin-1, and its effects on the connection. */
export interface Http1ResponseHead {
  readonly status: number
  readonly reason: string
  readonly fields: readonly string[]
  readonly framing: ResponseBodyFraming
  /** By its `Content-Type` the response is a stream, which continues until one side ends it, even if it has a length. */
  readonly isStream: boolean
  /** The device accepts another request on this connection (RFC 9112 §9.3), and the end of this response is certain. */
  readonly persists: boolean
  /** The device announces that it closes this connection after the response (RFC 9112 §9.3). */
  readonly closes: boolean
  /** How long (ms) the device keeps an idle connection open, from its `Keep-Alive: timeout`. */
  readonly keptFor: number | undefined
  /** How many more requests the device accepts on this connection, from its `Keep-Alive: max`. */
  readonly most: number | undefined
  /** The head is from `HeadMemory`: `fields` is the same array each time. */
  readonly remembered: boolean
}

const SECRETS: ReadonlySet<string> = new Set([
  'set-cookie',
  'www-authenticate',
  'authentication-info',
  'location',
])

/**
 * Whether `HeadMemory` may keep this head: it is final, and no field can contain a session, a nonce or a token. The memory would keep such
 * a secret after the response, and heads with one rarely repeat.
 */
export function mayRemember({ status, fields }: Http1ResponseHead): boolean {
  return status >= 200 && !fields.some((name, i) => i % 2 === 0 && SECRETS.has(name.toLowerCase()))
}

const KEEP_ALIVE_TIMEOUT = /timeout=(\d+)/
const MOST = /max=(\d+)/

const STREAM = /^(?:text\/event-stream|multipart\/x-mixed-replace)(?:[\s;]|$)/i

/** Whether a `Content-Type` is that of a stream. Some cameras also send a `Content-Length`, larger than any real stream. */
export function isStreamType(type: string): boolean {
  return STREAM.test(type)
}

/**
 * Interprets a response head. Undefined if the end of the body is uncertain: two lengths, both a length and a coding, a coding other than
 * `chunked` (RFC 9112 §6.1), or a length that is no number or is 2^53 or more. `method`: that of the request.
 */
export function interpretResponse(text: ResponseHeadText, method: string): Http1ResponseHead | undefined {
  const { version, reason, fields } = text
  let length: string | undefined
  let coding: string | undefined
  let lengths = 0
  let connection = NONE
  let keepAlive = ''
  let type: string | undefined
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    // The length of a name excludes most candidates.
    switch (name.length) {
      case 10:
        if (name.toLowerCase() === 'connection') connection = [...connection, ...connectionMembers(value)]
        else if (name.toLowerCase() === 'keep-alive') keepAlive += `${value},`
        break
      case 12:
        if (name.toLowerCase() === 'content-type') type ??= value
        break
      case 14:
        if (name.toLowerCase() === 'content-length') {
          length = value
          lengths += 1
        }
        break
      case 17:
        if (name.toLowerCase() === 'transfer-encoding') {
          coding = value
          lengths += 1
        }
    }
  }
  const status = Number(text.status)
  const bodiless = endsWithHead(method, status)
  const framing = lengths > 1 ? undefined : responseFraming(length, coding, bodiless)
  if (framing === undefined) return undefined
  // Firmware that announces a body for a bodiless response may also send the body.
  const clean = bodiless ? coding === undefined && !Number(length) : framing !== 'end'
  const closes = !persists(version, connection)
  const seconds = numberIn(keepAlive, KEEP_ALIVE_TIMEOUT)
  return {
    status,
    reason,
    fields,
    framing,
    isStream: type !== undefined && isStreamType(type),
    persists: clean && !closes,
    closes,
    keptFor: seconds === undefined ? undefined : seconds * 1000,
    most: numberIn(keepAlive, MOST),
    remembered: false,
  }
}

const NONE: readonly string[] = []

function responseFraming(
  length: string | undefined,
  coding: string | undefined,
  bodiless: boolean,
): ResponseBodyFraming | undefined {
  if (coding !== undefined) {
    if (bodiless) return 0
    return coding.toLowerCase() === 'chunked' ? 'chunked' : undefined
  }
  if (length === undefined) return bodiless ? 0 : 'end'
  const bytes = lengthIn(length)
  return bytes === undefined || !bodiless ? bytes : 0
}

function numberIn(keepAlive: string, parameter: RegExp): number | undefined {
  const digits = keepAlive === '' ? undefined : parameter.exec(keepAlive)?.[1]
  return digits === undefined ? undefined : Number(digits)
}
