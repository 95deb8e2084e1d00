import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'

/**
 * Detects a client that begins a header block (HEADERS and CONTINUATION frames) and does not complete it in time. Node reports a
 * stream only when its header block is complete. The state of nghttp2 has the id of the latest stream that began.
 * @param allowed how long a header block may take (ms)
 */
export function watchHeaders(session: ServerHttp2Session, socket: Socket, allowed: number) {
  let completedUpTo = 0
  let begunAt: number | undefined
  /** Bytes received at the last check. */
  let received = 0

  const latestBegun = (): number => session.state.lastProcStreamID ?? 0

  return {
    /** The header block of this stream is complete. */
    completed(stream: number): void {
      completedUpTo = Math.max(completedUpTo, stream)
    },
    /** A frame arrived that is not allowed within a header block (RFC 9113 §4.3), so no block is open. */
    noneOpen(): void {
      completedUpTo = latestBegun()
    },
    /**
     * Whether a header block has been open for too long. Called at intervals; `now` is in ms of any clock.
     * A header block that nghttp2 refused as malformed counts as open until another frame arrives. So the same deadline closes the
     * connection of a client that sends nothing more.
     */
    overdue(now: number): boolean {
      const { bytesRead } = socket
      // Reading nghttp2's state costs too much for thousands of idle sessions.
      if (begunAt === undefined && bytesRead === received) return false
      received = bytesRead
      if (latestBegun() <= completedUpTo) begunAt = undefined
      else begunAt ??= now
      return begunAt !== undefined && now - begunAt >= allowed
    },
  }
}
