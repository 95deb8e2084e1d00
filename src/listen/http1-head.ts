import type { IncomingMessage } from 'node:http'
import type { RequestHead } from '../http/exchange.ts'
import type { BodyFraming } from './http1-framing.ts'

/** What the server knows of a request beside its message. */
export interface RequestFacts {
  readonly secure: boolean
  readonly localPort: number
  readonly upgrade: boolean
  /** The client expects something before it sends its body (RFC 9110 §10.1.1). */
  readonly expects: boolean
}

export function requestHead(req: IncomingMessage, { secure, localPort, upgrade }: RequestFacts): RequestHead {
  return {
    version: versionOf(req),
    secure,
    method: req.method ?? '',
    target: req.url ?? '',
    authority: undefined,
    fields: req.rawHeaders,
    peer: req.socket.remoteAddress ?? '',
    localPort,
    upgrade,
    endsWithHead: false,
  }
}

/** Node's parser takes `HTTP/2.0` in a request line of HTTP/1 without a word. */
function versionOf(req: IncomingMessage): RequestHead['version'] {
  if (req.httpVersionMajor !== 1) return 'unknown'
  return req.httpVersionMinor === 0 ? '1.0' : '1.1'
}

/** How Node's parser frames the body. Undefined where that is a number to which nobody can count. */
export function bodyFraming(fields: readonly string[]): BodyFraming | undefined {
  let length = 0
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i]
    // Most names are told apart by their length alone.
    if (name?.length === TRANSFER_ENCODING.length && name.toLowerCase() === TRANSFER_ENCODING)
      return 'chunked'
    if (name?.length === CONTENT_LENGTH.length && name.toLowerCase() === CONTENT_LENGTH) {
      length = Number(fields[i + 1])
    }
  }
  return Number.isSafeInteger(length) ? length : undefined
}

const TRANSFER_ENCODING = 'transfer-encoding'
const CONTENT_LENGTH = 'content-length'
