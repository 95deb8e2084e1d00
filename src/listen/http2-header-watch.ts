import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'

/** Tells when a client takes too long to send a header block that it has begun. */
export interface HeaderWatch {
  /** The header block of a stream is whole. */
  whole(stream: number): void
  /** A frame has come that may not stand within a header block (RFC 9113 §4.3), so none is open. */
  noneOpen(): void
  /** Whether one has been open for longer than allowed; `now` in ms of any clock, looked at now and then. */
  overdue(now: number): boolean
}

/** Node tells of a stream only once its header block is whole; nghttp2's state names the newest that has begun. */
export function watchHeaders(session: ServerHttp2Session, socket: Socket, allowed: number): HeaderWatch {
  let wholeUpTo = 0
  let begunAt: number | undefined
  /** Bytes received by the last look. */
  let received = 0

  const newestBegun = (): number => session.state.lastProcStreamID ?? 0

  return {
    whole(stream) {
      wholeUpTo = Math.max(wholeUpTo, stream)
    },
    noneOpen() {
      wholeUpTo = newestBegun()
    },
    /**
     * A header block that nghttp2 refused for its form counts as open until another frame has come: a client that falls
     * silent behind one keeps the connection for no longer than that either.
     */
    overdue(now) {
      const { bytesRead } = socket
      // To ask nghttp2 takes time, for thousands of idle sessions too much of it.
      if (begunAt === undefined && bytesRead === received) return false
      received = bytesRead
      if (newestBegun() <= wholeUpTo) begunAt = undefined
      else begunAt ??= now
      return begunAt !== undefined && now - begunAt >= allowed
    },
  }
}
