import { constants, type ServerHttp2Session } from 'node:http2'
import { afterTurn } from '../../system/clock.ts'
import type { Http2Exchange } from './http2-exchange.ts'

/** How many turns of the event loop a reset takes at most: through a `Sluice`, each write of TLS takes two. */
const TURNS = 8

/** `NGHTTP2_ERR_PROTO`: nghttp2 refuses a frame. */
const REFUSED_FRAME = -505

/**
 * Keeps a session open when a client sends more DATA than the `content-length` of a request. That is an error of the stream (RFC 9113
 * §8.1.1), and nghttp2 resets only the stream. Node 26.10 takes it for an error of the connection and destroys the session. So this class
 * delays `destroy` for the turns of the event loop in which nghttp2 writes its queue. If a reset was written by then, the session stays.
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
      const awaitReset = (turns: number): void => {
        if (this.#resets !== before) return
        if (turns === 0) destroy(error, code)
        else afterTurn(() => awaitReset(turns - 1))
      }
      afterTurn(() => awaitReset(TURNS))
    }
  }

  /** Call this when a stream has closed. */
  closed({ resetCode }: Http2Exchange): void {
    if (resetCode === constants.NGHTTP2_PROTOCOL_ERROR) this.#resets += 1
  }
}

function isRefusedFrame(error: unknown): boolean {
  return error instanceof Error && 'errno' in error && error.errno === REFUSED_FRAME
}
