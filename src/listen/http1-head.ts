import type { IncomingMessage } from 'node:http'
import type { RequestHead } from '../http/exchange.ts'

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
