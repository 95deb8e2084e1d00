import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2'
import type { Outcome, RequestHead } from '../../http/exchange.ts'
import { type Fields, groupFields, keepFields } from '../../http/fields.ts'
import { requestFraming, surveyFields } from '../../http/head-survey.ts'
import type { Clock } from '../../system/clock.ts'

/** A head in Node's form: names in lower case (RFC 9113 §8.2.1), and a repeated field as a list, in order. */
export function headersOf(status: number, fields: Fields): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = groupFields(fields, 'lower')
  headers[':status'] = status
  return headers
}

/** The fields for a head that ends its stream: `Content-Length` would make the response malformed (RFC 9113 §8.1.1). */
export function withoutLength(fields: Fields): Fields {
  return keepFields(fields, (name) => name !== 'content-length')
}

/** How many heads one session remembers, as an HTTP/1 connection does. */
const HEADS_KNOWN = 2
/** The longest head that is remembered (bytes). */
const LONGEST = 1024

/** Reads the heads of one session. An equal head is the same object, so facts that are derived from a head are derived once. */
export class HeadsOfSession {
  readonly #peer: string
  readonly #localPort: number
  readonly #known: { readonly raw: Fields; readonly head: RequestHead }[] = []

  constructor(peer: string, localPort: number) {
    this.#peer = peer
    this.#localPort = localPort
  }

  /** @param raw the fields with the pseudo-header fields, which come first (RFC 9113 §8.3) */
  headOf(raw: Fields, headers: IncomingHttpHeaders, endsWithHead: boolean): RequestHead {
    if (!endsWithHead) return this.#read(raw, headers, endsWithHead)
    for (const { raw: known, head } of this.#known) if (isSameFields(known, raw)) return head
    const head = this.#read(raw, headers, endsWithHead)
    if (head.survey.size <= LONGEST && this.#known.unshift({ raw, head }) > HEADS_KNOWN) this.#known.pop()
    return head
  }

  #read(raw: Fields, headers: IncomingHttpHeaders, endsWithHead: boolean): RequestHead {
    let pseudo = 0
    while (raw[pseudo]?.startsWith(':')) pseudo += 2
    const fields = raw.slice(pseudo)
    const survey = surveyFields(fields)
    return {
      version: '2',
      secure: true,
      method: headers[':method'] ?? '',
      target: headers[':path'] ?? '',
      authority: headers[':authority'],
      fields,
      peer: this.#peer,
      localPort: this.#localPort,
      redirects: false,
      upgrade: false,
      framing: requestFraming('2', survey, endsWithHead),
      survey,
      classified: undefined,
      client: undefined,
      presented: undefined,
      outgoing: undefined,
      shown: undefined,
      changes: undefined,
      logged: undefined,
    }
  }
}

function isSameFields(one: Fields, other: Fields): boolean {
  if (one.length !== other.length) return false
  for (let i = 0; i < one.length; i += 1) if (one[i] !== other[i]) return false
  return true
}

/** A 205 response has no body (RFC 9110 §15.3.6), even if the device sends one. Its head ends the stream. */
export const RESET_CONTENT = 205

/** The facts and handlers that all streams of a session share. */
export interface StreamFacts<Stream> {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  /** Call this after bytes were queued. False if the session holds too many queued bytes: then the stream is cut. */
  readonly mayQueue: () => boolean
  /** See `Exchange.takesLarge`. */
  readonly takesLarge: () => boolean
  /** Called when bytes of a body were read or dropped. */
  readonly onRead: (bytes: number) => void
  /** Called when Node has closed the stream. Node closes a cut stream before its reset is sent. */
  readonly onClosed: (exchange: Stream, end: Outcome) => void
}
