import type { RequestHead } from '../http/exchange.ts'

/**
 * What the things that clients make the process hold cost beside their bytes (bytes): the objects of JavaScript, what Node, nghttp2 and
 * OpenSSL allocate for them, and the kernel's structures. Each is an upper bound; `test/memory/costs.test.ts` measures those of a
 * connection, a session and a stream.
 */

/** A connection in cleartext. */
export const CONNECTION: number = 12 * 1024

/** A connection with TLS, from its first byte on: a handshake that stops within a large ClientHello costs more than one that is done. */
export const TLS_CONNECTION: number = 92 * 1024

/**
 * What HTTP/2 adds to a connection: the session, both tables of HPACK (RFC 7541 §4.2), and frames that wait. A header block that no
 * stream has been announced for comes on top, up to the largest head.
 */
export const SESSION: number = 12 * 1024

/** An HTTP/2 request. */
export const STREAM: number = 9 * 1024

/** An HTTP/1 request. */
export const REQUEST: number = 4 * 1024

/** An HTTP/2 client may send so much of each body before it is read: the window of a stream (RFC 9113 §6.9.2). */
export const STREAM_WINDOW: number = 64 * 1024

/** A tunnel: the connection to the device, and the buffers of both directions. */
export const TUNNEL: number = 96 * 1024

/** Two strings of a field, in the lists and objects that hold it. */
const FIELD = 100

/** What a head costs (bytes): its text, once more as derived values, and its fields one by one. */
export function headCost({ target, fields, survey }: RequestHead): number {
  return 1.5 * (survey.size + target.length) + (FIELD / 2) * fields.length
}
