import {
  constants,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Outcome } from '../../http/exchange.ts'
import type { Holder, Holding } from '../../memory/account.ts'
import { headCost, SESSION, STREAM, STREAM_WINDOW } from '../../memory/costs.ts'
import type { Clock } from '../../system/clock.ts'
import { accountOf, type ListenLimits, type ListenMemory, type Overuse } from '../connection-caps.ts'
import { Arrivals, type Serving } from './arrivals.ts'
import { CarriedStream, Http2Exchange } from './http2-exchange.ts'
import { HeadsOfSession } from './http2-heads.ts'
import { Misuse } from './misuse.ts'
import { OpenExchanges } from './open-exchanges.ts'
import { Overhead } from './overhead.ts'
import { SessionDeadlines } from './session-deadlines.ts'
import { StreamErrors } from './stream-errors.ts'

export interface Http2Handlers extends Serving {
  /** Called when a client has exceeded a limit. Its session is closed; for `max_queued_bytes` only the stream is reset. */
  readonly onOveruse: (reason: Overuse) => void
  /**
   * Called when a connection has closed that used much of its limits on resets, control frames and tiny frames. `part`: the used share, 0
   * to 1; it is 1 if the client exceeded a limit or broke the protocol.
   */
  readonly onMisused: (peer: string, part: number) => void
}

export type Http2Session = ReturnType<typeof serveSession>

/** A closed connection that used at most this share of its limits is forgotten. */
const FORGIVEN = 0.1

/** The memory that Node allows a session by default, queued bytes included (MB of a million bytes). */
const NODE_SESSION_MEMORY = 10

/** Serves a decrypted connection on which `h2` was negotiated. `wire`: the TCP socket below it. `now`: see `checkDeadlines`. */
export function serveSession(
  socket: TLSSocket,
  wire: Socket,
  limits: ListenLimits,
  handlers: Http2Handlers,
  clock: Clock,
  now: number,
  memory: ListenMemory,
  holding: Holding,
) {
  const { account } = memory
  const { onOveruse, onMisused } = handlers
  const { remoteAddress: peer = '', localPort = 0 } = wire
  // `maxHeaderSize` is for the header block of the first stream: no event announces it before it is complete.
  holding.set('connections', holding.held('connections') + SESSION + limits.maxHeaderSize)
  const session = openSession(socket, limits, account.streamsOffered(limits.maxStreams))
  const heads = new HeadsOfSession(peer, localPort)
  const errors = new StreamErrors(session)
  const onFull = (): void => onOveruse('max_queued_bytes')
  const hasFrames = (): boolean => (session.state.outboundQueueSize ?? 0) > 0
  const written = (): number => socket.bytesWritten
  const onRead = (bytes: number): void => overhead.addBody(bytes)
  const open = new OpenExchanges({
    clock,
    limits,
    account,
    holding,
    onFull,
    hasFrames,
    written,
    onRead,
    onLeft,
  })
  const overhead = new Overhead(socket, () => open.unreadBytes())
  const misuse = new Misuse(session, { limits, overhead, onOveruse, now })
  const arrivals = new Arrivals(handlers, misuse)
  const deadlines = new SessionDeadlines(session, { socket, wire, limits, open, now })
  const { headers } = deadlines
  holding.holder = holderOf(session, socket, open)

  // Node reports a broken session here and closes it. Without a listener the error would end the process.
  session.on('error', (error: NodeJS.ErrnoException) => {
    // An error keeps the receivers of its stack frames alive until `stack` is read. One of them is the native session (100 KiB), which then
    // keeps itself alive if the client never acknowledged the SETTINGS.
    void error.stack
    misuse.sessionFailed(error)
  })
  // Emitted after `error`, and after the end of the connection.
  session.on('close', () => {
    const part = misuse.usedShare(open.count)
    if (peer !== '' && part > FORGIVEN) onMisused(peer, part)
  })
  session.on('ping', onControlFrame)
  session.on('remoteSettings', () => {
    deadlines.greeted = true
    onControlFrame()
  })
  session.on('stream', (stream, fields, _flags, rawFields) => {
    const head = heads.headOf(rawFields, fields, stream.endAfterHeaders)
    headers.completed(stream.id ?? 0)
    overhead.addHead(head)
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
    const exchange = new Http2Exchange(stream, head, open)
    exchange.memory = ofStream
    exchange.holding = ofStream
    exchange.charged = cost
    if (carried !== undefined) carried.exchange = exchange
    misuse.judgeOverhead()
    if (misuse.condemned) return misuse.dismiss()
    open.enter(exchange)
    arrivals.add(exchange)
  })

  function onControlFrame(): void {
    deadlines.active = true
    headers.noneOpen()
    misuse.countControlFrame()
  }

  /**
   * Refuses a stream before its request is processed, so the client may repeat it (RFC 9113 §8.7). It counts in no window (C13), but it
   * counts as a reset: a client that repeats it without end makes the sidecar work for free.
   */
  function refuse(stream: ServerHttp2Stream): void {
    stream.on('error', () => {})
    stream.close(constants.NGHTTP2_REFUSED_STREAM)
    // Node keeps a stream until the received bytes of its body are read.
    stream.on('data', ({ length }: Buffer) => onRead(length))
    deadlines.active = true
    overhead.addRefused()
    misuse.countReset()
  }

  function onLeft(exchange: Http2Exchange, end: Outcome): void {
    deadlines.active = true
    errors.closed(exchange)
    if (exchange.refusedUpload) overhead.addRefused()
    if (exchange.holding !== undefined) release(exchange.holding, exchange.charged)
    if (end === 'aborted') misuse.countReset()
  }

  /** Opens the holding for a stream that a trusted proxy carries. It belongs to the client that the proxy names. */
  function holdingBehind(forwardedFor: readonly string[], stream: CarriedStream): Holding {
    return account.open(accountOf(memory, peer, forwardedFor), stream)
  }

  /** Gives back the charge of a closed stream. */
  function release(ofStream: Holding, charged: number): void {
    if (ofStream === holding) holding.add('requests', -charged)
    else ofStream.close()
  }

  return {
    /** Enforces the deadlines. `time` is in ms of any clock. */
    checkDeadlines(time: number): void {
      misuse.check(time)
      deadlines.check(time)
    },
    /** Sends GOAWAY: open streams may finish, and the client opens new ones on another connection. */
    drain: (): void => session.close(),
  }
}

/** @param maxStreams how many streams the client may have open */
function openSession(socket: TLSSocket, limits: ListenLimits, maxStreams: number): ServerHttp2Session {
  return performServerHandshake(socket, {
    settings: {
      maxConcurrentStreams: maxStreams,
      maxHeaderListSize: limits.maxHeaderSize,
      enableConnectProtocol: false,
    },
    // nghttp2 resets a stream with more fields. With fewer, the gate applies `maxHeaderCount` and sends a refusal.
    maxHeaderListPairs: 2 * limits.maxHeaderCount,
    // Streams that nghttp2 or Node refuses cost as much as resets, and cause no event here.
    maxSessionInvalidFrames: limits.maxResets,
    maxSessionRejectedStreams: limits.maxResets,
    // Node counts queued bytes toward this limit and refuses every stream beyond it. The sidecar bounds queued bytes itself.
    maxSessionMemory: NODE_SESSION_MEMORY + Math.ceil(limits.maxQueuedBytes / 1e6),
    // A response with two `Content-Type` fields passes over HTTP/1, so it passes here too.
    strictSingleValueFields: false,
    // If strict, nghttp2 drops a field with blanks around its value and serves the rest. The gate refuses the request instead.
    strictFieldWhitespaceValidation: false,
  })
}

/** The session as a holder of memory. */
function holderOf(session: ServerHttp2Session, socket: TLSSocket, open: OpenExchanges): Holder {
  return {
    get working(): boolean {
      return open.count > 0
    },
    get atDevice(): boolean {
      return open.all().some((exchange) => exchange.atDevice)
    },
    // `OpenExchanges.cutUnread` gives up unread responses.
    cutUnread: () => 0,
    cut(): void {
      session.destroy()
      socket.destroy()
    },
  }
}
