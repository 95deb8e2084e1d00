import { constants, performServerHandshake, type ServerHttp2Stream } from 'node:http2'
import type { TLSSocket } from 'node:tls'
import type { Exchange, Outcome } from '../../http/exchange.ts'
import { type Holding, PATIENCE } from '../../memory/account.ts'
import { headCost, SESSION, STREAM, STREAM_WINDOW } from '../../memory/costs.ts'
import { LARGE_BUFFER } from '../../system/read-buffers.ts'
import {
  accountOf,
  type ListenLimits,
  type ListenMemory,
  OVERUSE_SPAN,
  type Overuse,
} from '../connection-caps.ts'
import { CarriedStream, Http2Exchange } from './exchange.ts'
import { HeadsOfSession } from './fields.ts'
import { watchHeaders } from './header-watch.ts'
import { OpenExchanges } from './open-exchanges.ts'

export interface Http2Handlers {
  readonly onExchange: (exchange: Exchange) => void
  /** Called for a bug in `onExchange`. Only that stream is reset. */
  readonly onBug: (error: unknown) => void
  /** A client exceeded a limit. Its session is closed, or the stream is reset. */
  readonly onOveruse: (reason: Overuse) => void
  /**
   * A connection has closed that used much of its limits on resets and control frames. `part` is the used share, 0 to 1; a
   * connection that broke the protocol has used all.
   */
  readonly onMisused: (peer: string, part: number) => void
}

export type Http2Session = ReturnType<typeof serveSession>

/** How long (ms) a session without work may last: once for bytes in flight, and once for the client to close its side. */
const LINGER_TIME = 500
/** The same for a client that has not read what was sent. */
const UNREAD_LINGER_TIME = 3_000

/** A closed connection that used less of its limits than this share is forgotten. */
const FORGIVEN = 0.1

/** The memory that Node allows a session by default, queued bytes included (MB of a million bytes). */
const NODE_SESSION_MEMORY = 10

/** Serves a decrypted connection on which `h2` was negotiated. `now`: see `checkDeadlines`. */
export function serveSession(
  socket: TLSSocket,
  limits: ListenLimits,
  { onExchange, onBug, onOveruse, onMisused }: Http2Handlers,
  now: number,
  memory: ListenMemory,
  holding: Holding,
) {
  const { account } = memory
  // Before the first stream: its header block, which no event announces, may be as large.
  holding.set('connections', holding.held('connections') + SESSION + limits.maxHeaderSize)
  const session = performServerHandshake(socket, {
    settings: {
      maxConcurrentStreams: account.streamsOffered(limits.maxStreams),
      maxHeaderListSize: limits.maxHeaderSize,
      enableConnectProtocol: false,
    },
    // nghttp2 resets a stream with more fields. With fewer, the gate applies `max_header_count` and sends a refusal.
    maxHeaderListPairs: 2 * limits.maxHeaderCount,
    // Streams that nghttp2 or Node refuses cost as much as resets, and cause no event here.
    maxSessionInvalidFrames: limits.maxResets,
    maxSessionRejectedStreams: limits.maxResets,
    // Node counts queued bytes in it and refuses every stream beyond it. The sidecar bounds queued bytes itself.
    maxSessionMemory: NODE_SESSION_MEMORY + Math.ceil(limits.maxQueuedBytes / 1e6),
    // A response with two `Content-Type` fields passes over HTTP/1, so it passes here too.
    strictSingleValueFields: false,
    // If strict, nghttp2 drops a field with blanks around its value and serves the rest. The gate refuses the request instead.
    strictFieldWhitespaceValidation: false,
  })
  const open = new OpenExchanges()
  /** Exchanges whose head arrived in this turn of the event loop. */
  let arrived: Http2Exchange | undefined
  let lastArrived: Http2Exchange | undefined
  const { remoteAddress: peer = '' } = socket
  const heads = new HeadsOfSession(peer, socket.localPort ?? 0)
  const facts = { mayQueue, takesLarge, onClosed }
  const opened = now
  /** The client's SETTINGS frame has arrived. */
  let greeted = false
  /** Something arrived or ended since the last check. */
  let active = true
  let activeAt = now
  let spanBegan = now
  let resets = 0
  let controlFrames = 0
  /** The client exceeded a limit, so the session is being closed. */
  let condemned = false
  /** The time of the first check that found nothing to do but close the connection. */
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

  /** Whether the responses of all streams together have few enough bytes queued (`max_queued_bytes`). */
  function mayQueue(): boolean {
    let queued = 0
    for (let i = 0; i < open.count; i += 1) queued += open.at(i)?.queued ?? 0
    holding.set('responses', queued)
    if (queued <= limits.maxQueuedBytes) return true
    onOveruse('max_queued_bytes')
    return false
  }

  /** Large pieces of all streams together take an eighth of `max_queued_bytes`, so that many more streams can begin. */
  function takesLarge(): boolean {
    return open.count * LARGE_BUFFER <= limits.maxQueuedBytes / 8
  }

  function onClosed(exchange: Http2Exchange, end: Outcome): void {
    open.leave(exchange)
    active = true
    if (exchange.holding !== undefined) release(exchange.holding, exchange.charged)
    if (end === 'aborted') countReset()
  }

  /** The share of its limits that the client used. Open streams count as reset, so closing just before the limit does not help. */
  function usedShare(): number {
    const used = Math.max((resets + open.count) / limits.maxResets, controlFrames / limits.maxControlFrames)
    return condemned ? 1 : Math.min(used, 1)
  }

  /** Serves the requests of this turn. All input is read first, so a stream that was reset in the meantime costs nothing. */
  function serveArrived(): void {
    let next = arrived
    arrived = undefined
    lastArrived = undefined
    while (next !== undefined) {
      const exchange = next
      next = exchange.next
      exchange.next = undefined
      if (exchange.ended || condemned) continue
      try {
        onExchange(exchange)
      } catch (error) {
        onBug(error)
        exchange.cut()
      }
    }
  }

  /**
   * Refuses a stream before any of it is processed, so the client may repeat it (RFC 9113 §8.7). It counts in no window (C13),
   * but as a reset: a client that repeats without end makes the sidecar work for free.
   */
  function refuse(stream: ServerHttp2Stream): void {
    stream.on('error', () => {})
    stream.close(constants.NGHTTP2_REFUSED_STREAM)
    // Node keeps a stream until what has arrived of its body is read.
    stream.resume()
    active = true
    countReset()
  }

  /** What a stream holds that a trusted proxy carries: it belongs to the client behind it. */
  function holdingBehind(forwardedFor: readonly string[], stream: CarriedStream): Holding {
    return account.open(accountOf(memory, peer, forwardedFor), stream)
  }

  /** A stream has closed. */
  function release(ofStream: Holding, charged: number): void {
    if (ofStream === holding) holding.add('requests', -charged)
    else ofStream.close()
  }

  holding.holder = {
    get working(): boolean {
      return open.count > 0
    },
    get atDevice(): boolean {
      return open.all().some((exchange) => exchange.atDevice)
    },
    // `checkDeadlines` looks at the streams.
    giveUpUnread: () => 0,
    drop(): void {
      session.destroy()
      socket.destroy()
    },
  }

  // Node reports a broken session here and closes it. Without a listener the error would end the process.
  session.on('error', (error: NodeJS.ErrnoException) => {
    // An error keeps the receivers of its stack frames alive until `stack` is read. One of them is the native session, which
    // then keeps itself alive (100 KiB) if the client never acknowledged the settings.
    void error.stack
    const reason = overuseIn(error)
    if (reason === undefined) return
    condemned = true
    onOveruse(reason)
  })
  // Emitted after `error`, and after the end of the connection.
  session.on('close', () => {
    const part = usedShare()
    if (peer !== '' && part > FORGIVEN) onMisused(peer, part)
  })
  session.on('ping', countControlFrame)
  session.on('remoteSettings', () => {
    greeted = true
    countControlFrame()
  })
  session.on('stream', (stream, fields, _flags, rawFields) => {
    const head = heads.headOf(rawFields, fields, stream.endAfterHeaders)
    headers.completed(stream.id ?? 0)
    const cost = STREAM + headCost(head) + (stream.endAfterHeaders ? 0 : STREAM_WINDOW)
    const carried = holding.client.isProxy ? new CarriedStream() : undefined
    const ofStream = carried === undefined ? holding : holdingBehind(head.survey.forwardedFor, carried)
    const mayOpen = account.mayHold(ofStream.client, cost, 'stream')
    ofStream.add('requests', cost)
    if (!mayOpen) {
      stream.once('close', () => release(ofStream, cost))
      refuse(stream)
      return
    }
    const exchange = new Http2Exchange(stream, head, facts)
    exchange.memory = ofStream
    exchange.holding = ofStream
    exchange.charged = cost
    if (carried !== undefined) carried.exchange = exchange
    if (condemned) return dismiss()
    open.enter(exchange)
    if (arrived === undefined || lastArrived === undefined) {
      arrived = exchange
      setImmediate(serveArrived)
    } else lastArrived.next = exchange
    lastArrived = exchange
  })

  /**
   * Cuts each response that the client has not read for its patience: `idleTimeout`, or `PATIENCE` for an own answer while memory is short.
   * The stream of a cut response may stay open: its reset waits while the client reads nothing, and is never sent if nghttp2 has ended the
   * session for a broken frame, which Node 26.10 does not report while streams are open.
   *
   * @returns the longest time without a read (ms). With a shorter patience, the difference to `idleTimeout` is added: so after any cut, the
   *   connection of a client that does not take the reset ends equally soon.
   */
  function cutUnread(time: number): number {
    let longest = 0
    const isShort = account.stage !== undefined && account.stage !== 'streams'
    for (const exchange of open.all()) {
      const unread = exchange.unreadFor(time)
      const isOwn = exchange.sentAt === 0
      const patience = isShort && isOwn ? Math.min(PATIENCE, limits.idleTimeout) : limits.idleTimeout
      if (unread >= patience) {
        if (patience < limits.idleTimeout && !exchange.ended) account.gaveUp('answers', 'answer')
        exchange.cut()
      }
      longest = Math.max(longest, unread + limits.idleTimeout - patience)
    }
    return longest
  }

  /** Closes a session without work. Node would wait without limit for the client: for the rest of a frame, and for its FIN. */
  function closeFinished(time: number): void {
    overSince ??= time
    const over = time - overSince
    if (over >= LINGER_TIME) session.destroy()
    if (over >= (socket.writableFinished ? 2 * LINGER_TIME : UNREAD_LINGER_TIME)) socket.destroy()
  }

  return {
    /** Enforces the deadlines. `time` is in ms of any clock. */
    checkDeadlines(time: number): void {
      if (time - spanBegan >= OVERUSE_SPAN) {
        spanBegan = time
        resets = 0
        controlFrames = 0
      }
      const unread = cutUnread(time)
      if (active || open.count > 0) activeAt = time
      active = false
      if (unread >= limits.idleTimeout + UNREAD_LINGER_TIME) socket.destroy()
      else if (session.destroyed || (session.closed && open.count === 0)) closeFinished(time)
      else if (!greeted && time - opened >= limits.headerTimeout) session.destroy()
      else if (headers.overdue(time) || time - activeAt >= limits.idleTimeout) session.close()
    },
    /** Sends GOAWAY: open streams may finish, and the client opens new ones on another connection. */
    drain: (): void => session.close(),
  }
}

/** Node's error codes for sessions that nghttp2 ends itself. */
const REFUSED_BY_NGHTTP2: ReadonlyMap<string | undefined, Overuse> = new Map([
  ['ERR_HTTP2_ERROR', 'protocol_error'],
  ['ERR_HTTP2_TOO_MANY_INVALID_FRAMES', 'max_resets'],
])

/** NGHTTP2_ERR_CALLBACK_FAILURE: Node refused too many streams, which were opened before reset ones had been closed. */
const TOO_MANY_REFUSED = -902

/** Why a client's session failed, if that is overuse; undefined for errors of the network and of the sidecar. */
function overuseIn({ code, errno }: NodeJS.ErrnoException): Overuse | undefined {
  return errno === TOO_MANY_REFUSED ? 'max_resets' : REFUSED_BY_NGHTTP2.get(code)
}
