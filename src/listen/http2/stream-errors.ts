import { constants, type ServerHttp2Session } from 'node:http2'
import type { Http2Exchange } from './exchange.ts'

/** NGHTTP2_ERR_PROTO: nghttp2 has refused a frame. */
const REFUSED_FRAME = -505

/**
 * Keeps a session whose client sent more of a body than its `content-length` says. That is an error of the stream (RFC 9113 §8.1.1), which nghttp2
 * resets, but Node 26.10 reports it like an error of the connection, and destroys the session. Whether nghttp2 has reset a stream is known when
 * what it has queued is written: in the next turn of the event loop.
 */
export class StreamErrors {
  #resets = 0

  constructor(session: ServerHttp2Session) {
    const destroy = session.destroy.bind(session)
    session.destroy = (error, code) => {
      if (!isRefusedFrame(error)) {
        destroy(error, code)
        return
      }
      const before = this.#resets
      setImmediate(() => {
        if (this.#resets === before) destroy(error, code)
      })
    }
  }

  /** A stream has closed. */
  closed({ resetCode }: Http2Exchange): void {
    if (resetCode === constants.NGHTTP2_PROTOCOL_ERROR) this.#resets += 1
  }
}

function isRefusedFrame(error: unknown): boolean {
  return error instanceof Error && 'errno' in error && error.errno === REFUSED_FRAME
}
