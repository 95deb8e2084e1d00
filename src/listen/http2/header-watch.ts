import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'

/** Tells when a client takes too long to send a header block that it has begun. */
export interface HeaderWatch {
  /** The header block of a stream is whole. */
  whole(stream: number): void
  /** A frame has come that may not stand within a header block (RFC 9113 §4.3), so none is open. */
  noneOpen(): void
  /** Whether a header block has been open for too long. To be asked again and again; `now` is in ms of any clock. */
  overdue(now: number): boolean
}

/**
 * Node reports a stream only once its header block is whole; nghttp2's state has the id of the newest that has begun.
 * @param allowed how long a header block may take (ms)
 */
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
     * A header block that nghttp2 refused as malformed counts as open until another frame has come, so the same deadline
     * ends the connection of a client that sends nothing more.
     */
    overdue(now) {
      const { bytesRead } = socket
      // Asking nghttp2 costs too much for thousands of idle sessions.
      if (begunAt === undefined && bytesRead === received) return false
      received = bytesRead
      if (newestBegun() <= wholeUpTo) begunAt = undefined
      else begunAt ??= now
      return begunAt !== undefined && now - begunAt >= allowed
    },
  }
}
