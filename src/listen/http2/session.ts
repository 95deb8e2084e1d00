import { constants, performServerHandshake } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { Exchange, Outcome } from '../../http/exchange.ts'
import { boundBacklog } from '../backlog.ts'
import { type ListenLimits, OVERUSE_SPAN, type Overuse } from '../limits.ts'
import { Http2Exchange } from './exchange.ts'
import { watchHeaders } from './header-watch.ts'

export interface Http2Handlers {
  readonly onExchange: (exchange: Exchange) => void
  /** A handler failed: its stream is reset, the others go on. */
  readonly onBug: (error: unknown) => void
  /** A client overdid something: its session, or the stream in question, is broken off. */
  readonly onOveruse: (reason: Overuse) => void
  /**
   * A connection of that peer has closed that took more than a little of what it may overdo: how much, as a part of it.
   * One that broke the protocol took all.
   */
  readonly onMisused: (peer: string, part: number) => void
}

/** One HTTP/2 connection. */
export interface Http2Session {
  /** Looks after the deadlines; `now` in ms of any clock. */
  look(now: number): void
  /** Sends GOAWAY: streams that run may finish, new ones go elsewhere. */
  drain(): void
}

/** How long (ms) a session that is over may go on: for what is still underway, and then for the client's side to end. */
const LINGER_TIME = 500
/** And how long for a client that does not take what was sent before. */
const GOODBYE_TIMEOUT = 3_000

/** The part of what a session may overdo that is nobody's concern once its connection has closed. */
const FORGIVEN = 0.1

/** What Node lets a session take by default, queued bytes and all (MB, of a million bytes). */
const NODES_OWN = 10

/** Serves a decrypted connection on which `h2` was agreed, from `now` on. */
export function serveSession(
  socket: TLSSocket,
  limits: ListenLimits,
  { onExchange, onBug, onOveruse, onMisused }: Http2Handlers,
  now: number,
): Http2Session {
  const session = performServerHandshake(socket, {
    settings: {
      maxConcurrentStreams: limits.maxStreams,
      maxHeaderListSize: limits.maxHeaderSize,
      enableConnectProtocol: false,
    },
    // Beyond this nghttp2 resets the stream; below it the gate counts, and answers.
    maxHeaderListPairs: 2 * limits.maxHeaderCount,
    // Streams that nghttp2 or Node refuses by itself are never seen here, and cost as much.
    maxSessionInvalidFrames: limits.maxResets,
    maxSessionRejectedStreams: limits.maxResets,
    // In it Node counts what is queued, and refuses every stream beyond: that cap is ours to hold.
    maxSessionMemory: NODES_OWN + Math.ceil(limits.maxQueuedBytes / 1e6),
    // A device that says its type twice is heard over HTTP/1 too.
    strictSingleValueFields: false,
    // If strict, nghttp2 drops a field with blanks around its value and serves the rest. The gate refuses the request instead.
    strictFieldWhitespaceValidation: false,
  })
  const open = new Set<Http2Exchange>()
  /** Those whose head has come since the last turn of the event loop. */
  const begun: Http2Exchange[] = []
  const facts = {
    peer: socket.remoteAddress ?? '',
    localPort: socket.localPort ?? 0,
    mayQueue: boundBacklog(open, limits.maxQueuedBytes, () => onOveruse('max_queued_bytes')),
    onClosed,
  }
  const opened = now
  let greeted = false
  /** Whether anything has come or ended since the last look, and when that was last so. */
  let active = true
  let activeAt = now
  let spanBegan = now
  let resets = 0
  let controlFrames = 0
  /** Whether it was ended for what its client did. */
  let condemned = false
  /** Since when nothing has been left to do but to close the connection. */
  let overSince: number | undefined
  const headers = watchHeaders(session, socket, limits.headerTimeout)

  function condemn(reason: Overuse): void {
    if (session.destroyed || condemned) return
    condemned = true
    onOveruse(reason)
  }

  function dismiss(): void {
    session.destroy(new Error('overuse'), constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }

  function countControlFrame(): void {
    active = true
    headers.noneOpen()
    controlFrames += 1
    if (controlFrames > limits.maxControlFrames) condemn('max_control_frames')
    if (condemned) dismiss()
  }

  /**
   * Rapid reset (CVE-2023-44487) and MadeYouReset (CVE-2025-8671): a client that opens streams only to have them reset makes the
   * sidecar work for free. The session is not ended here, within the close of a stream, but with the next frame or turn: ending
   * it makes nghttp2 send what waits for that stream and free the stream. nghttp2 then frees it a second time, which crashes the
   * process.
   */
  function countReset(): void {
    resets += 1
    if (resets <= limits.maxResets || condemned) return
    condemn('max_resets')
    setImmediate(dismiss)
  }

  function onClosed(exchange: Http2Exchange, end: Outcome['end']): void {
    open.delete(exchange)
    active = true
    if (end === 'aborted') countReset()
  }

  /** How much of its allowance the client used. Open streams count as reset, so leaving just before the limit does not help. */
  function overdone(): number {
    const used = Math.max((resets + open.size) / limits.maxResets, controlFrames / limits.maxControlFrames)
    return condemned ? 1 : Math.min(used, 1)
  }

  /** Everything that has come is read before any of it is served: of a stream that is broken off already, nothing is. */
  function handOver(): void {
    for (const exchange of begun.splice(0)) {
      if (exchange.ended || condemned) continue
      try {
        onExchange(exchange)
      } catch (error) {
        onBug(error)
        exchange.cut()
      }
    }
  }

  // Node reports a broken session here and closes it; without a listener it would end the process.
  session.on('error', (error: NodeJS.ErrnoException) => {
    // Until its stack has been asked for, an error holds what its functions were called on: the native session, which
    // then holds itself for ever, 100 KiB of it, if its client has not acknowledged our settings.
    void error.stack
    const reason = overuseIn(error)
    if (reason === undefined) return
    condemned = true
    onOveruse(reason)
  })
  // Behind the error, and behind the connection's own end.
  session.on('close', () => {
    const part = overdone()
    if (facts.peer !== '' && part > FORGIVEN) onMisused(facts.peer, part)
  })
  session.on('ping', countControlFrame)
  session.on('remoteSettings', () => {
    greeted = true
    countControlFrame()
  })
  session.on('stream', (stream, fields, _flags, rawFields) => {
    const exchange = new Http2Exchange(stream, fields, rawFields, facts)
    if (condemned) return dismiss()
    open.add(exchange)
    headers.whole(stream.id ?? 0)
    begun.push(exchange)
    if (begun.length === 1) setImmediate(handOver)
  })

  /**
   * Cuts each answer that its client has stopped taking for `idleTimeout`; gives the longest such time (ms). The stream
   * of a cut answer may stay open: its reset waits while the client reads nothing. The reset never leaves where nghttp2 has
   * ended a closed session for a broken frame, which Node 26.10 does not report while streams are open.
   */
  function cutUnread(time: number): number {
    let longest = 0
    for (const exchange of open) {
      const unread = exchange.unreadFor(time)
      if (unread >= limits.idleTimeout) exchange.cut()
      longest = Math.max(longest, unread)
    }
    return longest
  }

  /** Node waits for as long as the client likes: for half a frame to be completed, for its side to be closed. */
  function seeOff(time: number): void {
    overSince ??= time
    const over = time - overSince
    if (over >= LINGER_TIME) session.destroy()
    if (over >= (socket.writableFinished ? 2 * LINGER_TIME : GOODBYE_TIMEOUT)) socket.destroy()
  }

  return {
    look(time) {
      if (time - spanBegan >= OVERUSE_SPAN) {
        spanBegan = time
        resets = 0
        controlFrames = 0
      }
      const unread = cutUnread(time)
      if (active || open.size > 0) activeAt = time
      active = false
      if (unread >= limits.idleTimeout + GOODBYE_TIMEOUT) socket.destroy()
      else if (session.destroyed || (session.closed && open.size === 0)) seeOff(time)
      else if (!greeted && time - opened >= limits.headerTimeout) session.destroy()
      else if (headers.overdue(time) || time - activeAt >= limits.idleTimeout) session.close()
    },
    drain: () => session.close(),
  }
}

/** Node's error codes for sessions that nghttp2 ends itself. */
const REFUSED_BY_NGHTTP2: ReadonlyMap<string | undefined, Overuse> = new Map([
  ['ERR_HTTP2_ERROR', 'protocol_error'],
  ['ERR_HTTP2_TOO_MANY_INVALID_FRAMES', 'max_resets'],
])

/** NGHTTP2_ERR_CALLBACK_FAILURE: Node had to refuse too many streams, begun before those that were broken off had gone. */
const TOO_MANY_REFUSED = -902

/** Why a client's session failed, if that is overuse; undefined for errors of the network and of the sidecar. */
function overuseIn({ code, errno }: NodeJS.ErrnoException): Overuse | undefined {
  return errno === TOO_MANY_REFUSED ? 'max_resets' : REFUSED_BY_NGHTTP2.get(code)
}
