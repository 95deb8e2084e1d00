import type { Socket } from 'node:net'
import type { Refusal } from '../http/refusal.ts'
import type { Http1Exchange } from './http1-exchange.ts'

export const MALFORMED: Refusal = {
  kind: 'malformed',
  description: 'The bytes received are not an HTTP request.',
}

/** The body of a request turned out malformed: its exchange answers if it still can, else the connection breaks. */
export function breakUnfinished(exchange: Http1Exchange, socket: Socket): void {
  if (!exchange.unread) exchange.closeAfter()
  else if (!exchange.answered) exchange.breakBody()
  // An answer behind which the connection closes is not spoilt by what nobody will read.
  else if (!exchange.closing) socket.destroy()
}

/** What to answer where Node's parser gave up. */
export function refusalFor(error: NodeJS.ErrnoException): Refusal {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return { kind: 'header-too-large' }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { kind: 'request-timeout' }
    default:
      return MALFORMED
  }
}
