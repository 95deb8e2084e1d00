import type { RequestHead } from '../http/exchange.ts'

/**
 * The memory overhead of connections, requests and tunnels (bytes), beside the bytes that they buffer: the JavaScript objects, the
 * allocations of Node, nghttp2 and OpenSSL, and the structures of the kernel. Each cost is an upper bound. `test/memory/costs.test.ts`
 * measures those of a connection, a session and a stream.
 */

/** A connection in cleartext. */
export const CONNECTION: number = 12 * 1024

/** A TLS connection, with a record that is not complete. */
export const TLS_CONNECTION: number = 92 * 1024

/** A TLS connection until its handshake ends: OpenSSL keeps a large ClientHello in three buffers. */
export const HANDSHAKE: number = 104 * 1024

/**
 * The additional cost of HTTP/2 for a connection: the session, both HPACK tables (RFC 7541 §4.2), and queued frames. The caller adds the
 * size of the largest head, for a header block that is still incomplete.
 */
export const SESSION: number = 12 * 1024

/** An HTTP/2 request. */
export const STREAM: number = 9 * 1024

/** An HTTP/1 request. */
export const REQUEST: number = 4 * 1024

/** The flow-control window of a stream (RFC 9113 §6.9.2): an HTTP/2 client may send this much of a body before the sidecar reads it. */
export const STREAM_WINDOW: number = 64 * 1024

/** A tunnel: its connection to the device, and the buffers of both directions. */
export const TUNNEL: number = 96 * 1024

/** The name and the value of a field, with the lists and objects that hold them. */
const FIELD = 100

/** The cost of a request head (bytes): its text, the values derived from it, and its fields. */
export function headCost({ target, fields, survey }: RequestHead): number {
  return 1.5 * (survey.size + target.length) + (FIELD / 2) * fields.length
}
