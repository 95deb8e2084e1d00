import { connectionMembers, type Fields, lengthIn } from '../http/fields.ts'
import { persists } from './request-head.ts'

/** How the body of a response ends (RFC 9112 §6.3): after this many bytes, with its chunks, or at the end of the connection. */
type ResponseBodyFraming = number | 'chunked' | 'end'

/** A response head as it stands on the wire, in Latin-1. */
export interface ResponseHeadText {
  readonly version: '1.0' | '1.1'
  /** Three digits. */
  readonly status: string
  readonly reason: string
  readonly fields: Fields
}

/** The head of a response as it stands on the wire (Latin-1), and what it means for its connection. */
export interface Http1ResponseHead {
  readonly status: number
  readonly reason: string
  readonly fields: readonly string[]
  readonly framing: ResponseBodyFraming
  /** The server takes another request on this connection (RFC 9112 §9.3), and the end of this response is certain. */
  readonly persists: boolean
  /** How long (ms) the server keeps an idle connection, by its own `Keep-Alive: timeout`. */
  readonly keptFor: number | undefined
  /** The server sends this head again and again, and `fields` is the same array each time. */
  readonly repeated: boolean
}

/** Whether a response has no body, whatever its fields say (RFC 9112 §6.3). */
export function endsWithHead(method: string, status: number): boolean {
  return method === 'HEAD' || status < 200 || status === 204 || status === 304
}

const TIMEOUT = /timeout=(\d+)/

/**
 * Interprets a response head. Undefined where the end of the body is uncertain: two lengths, a length beside a coding, a
 * coding other than `chunked` (RFC 9112 §6.1), or a length of 2^53 or more. `method` is that of the request.
 */
export function interpretResponse(text: ResponseHeadText, method: string): Http1ResponseHead | undefined {
  const { version, reason, fields } = text
  let length: string | undefined
  let coding: string | undefined
  let lengths = 0
  let connection = NONE
  let keptFor: number | undefined
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    const value = fields[i + 1] ?? ''
    // Most names are told apart by their length alone.
    switch (name.length) {
      case 10:
        if (name.toLowerCase() === 'connection') connection = [...connection, ...connectionMembers(value)]
        else if (name.toLowerCase() === 'keep-alive') keptFor = secondsIn(value) ?? keptFor
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
  // Firmware that announces a body where HTTP allows none may send one.
  const clean = bodiless ? coding === undefined && !Number(length) : framing !== 'end'
  return {
    status,
    reason,
    fields,
    framing,
    persists: clean && persists(version, connection),
    keptFor,
    repeated: false,
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

function secondsIn(value: string): number | undefined {
  const seconds = TIMEOUT.exec(value)?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}
