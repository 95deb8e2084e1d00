import type { Overuse } from '../limits.ts'

/** By Node's name for it: what nghttp2 itself ends a session for. */
const REFUSED_BY_NGHTTP2: ReadonlyMap<string | undefined, Overuse> = new Map([
  ['ERR_HTTP2_ERROR', 'protocol_error'],
  ['ERR_HTTP2_TOO_MANY_INVALID_FRAMES', 'max_resets'],
])

/** NGHTTP2_ERR_CALLBACK_FAILURE: Node had to refuse too many streams, begun before those that were broken off had gone. */
const TOO_MANY_REFUSED = -902

/** What a client did too much of, where the session's own fault is that; other errors are those of the network, or our own. */
export function overuseIn({ code, errno }: NodeJS.ErrnoException): Overuse | undefined {
  return errno === TOO_MANY_REFUSED ? 'max_resets' : REFUSED_BY_NGHTTP2.get(code)
}
