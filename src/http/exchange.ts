import type { Duplex } from 'node:stream'
import type { GateFacts } from './admission.ts'
import type { Derived, DerivedByForward, DerivedByGate, DerivedByRecord } from './derived.ts'
import type { Fields } from './fields.ts'
import type { HeadSurvey, RequestFraming } from './head-survey.ts'
import type { LocalResponse, Refusal, UpstreamFailure } from './refusal.ts'

/** The head of a request as the client sent it, in any HTTP version. Nothing in it is trusted yet. */
export interface RequestHead extends Derived {
  readonly version: '1.0' | '1.1' | '2'
  readonly secure: boolean
  readonly method: string
  /** The request target, byte for byte (`:path` in HTTP/2). */
  readonly target: string
  readonly authority: string | undefined
  /** All header fields, without pseudo-header fields. */
  readonly fields: Fields
  /** The address of the peer that opened the connection; empty for a Unix socket. */
  readonly peer: string
  /** The port of the listener that accepted the connection; 0 for a Unix socket. */
  readonly localPort: number
  /** The client has reached `listen.redirect`, which leads to https. */
  readonly redirects: boolean
  /** The request asks for a WebSocket on this connection (HTTP/1.1 `Upgrade`). Other values of `Upgrade` are ignored. */
  readonly upgrade: boolean
  readonly framing: RequestFraming
  /** The values in `fields` that later steps need, so that they do not search again. */
  readonly survey: HeadSurvey
}

/** The head of a forwarded response; the body follows in pieces. */
export interface ResponseHead {
  readonly status: number
  /** Undefined: the usual phrase. */
  readonly reason?: string
  readonly fields: Fields
  /** The device's own fields about caches, if `fields` may contain others. */
  readonly said?: Fields
  /** Each response with this head has this same object, so values derived from it can be cached. */
  readonly reusable?: boolean
}

/** How an exchange ended. `complete`: the kernel took the whole response. `aborted`: the client left. `cut`: the sidecar aborted it. */
export type Outcome = 'complete' | 'aborted' | 'cut'

/** The calls at the end of a forwarded request. For each request one of the two is called, once. */
export interface ForwardEnd {
  /** @param refusal to send to the client; undefined if the client has a response or has left */
  readonly ended: (exchange: Exchange, refusal: Refusal | undefined) => void
  /** A bug of the sidecar ended the request. */
  readonly onBug: (exchange: Exchange, bug: unknown) => void
}

/** The calls from `forward/` about a request. */
export interface ForwardListener extends ForwardEnd {
  /** Whether the refusal is sent. If not, the gate only observes (`enforce: false`): it records the refusal, and the request continues. */
  readonly refuses: (exchange: Exchange, refusal: Refusal) => boolean
}

/** The part of an exchange that the device's response is written to. */
export type ClientSide = Pick<
  Exchange,
  'answered' | 'ended' | 'inform' | 'begin' | 'takesLarge' | 'write' | 'end' | 'cut' | 'onDrain' | 'onEnd'
>

/** The memory account of a request's client, for the rooms that handle the request (C26). */
export interface ClientMemory {
  /** Whether the process may hold `bytes` more of request bodies for the client. */
  mayHold(bytes: number): boolean
  /** Charges the client for bytes of request bodies; a negative change gives them back. */
  hold(change: number): void
  /** The client, with the live grant that has admitted its last request. The gate writes it. */
  readonly client: { grant: string | undefined }
}

/** The links by which the gate lists the exchanges in flight: `gate/` is the only writer. */
export interface InFlight {
  /** Called once, with this exchange, before the other listeners of its end. */
  recorder: ((exchange: Exchange) => void) | undefined
  /** The neighbours in the list of exchanges in flight: see `gate/live-exchanges.ts`. */
  newer: WrittenBy<'gate'> | undefined
  older: WrittenBy<'gate'> | undefined
}

/**
 * The facts about a request on its way to the device: `forward/` is the only writer. Instants are in ms on the monotonic clock; 0 means
 * that the event did not happen.
 */
export interface DeviceFacts {
  /** The path of a service of `upstream.routes`; empty for the main service; undefined if the request fits no service. */
  route: string | undefined
  /** How long the request waited in queues (ms): for buffering its upload, and for its place at the device. */
  waited: number
  /** How many places the device had when the wait for a place ended. */
  places: number
  /**
   * Whether other requests wait for this request's place at the device. A half-closed HTTP/1 client may have left; it is probed only while
   * other requests wait. (An HTTP/2 client that leaves resets its stream or closes its session.)
   */
  othersWait: (() => boolean) | undefined
  /** Gives the place at the device back early. Otherwise the end of the exchange gives it back. */
  leavePlace: (() => void) | undefined
  /** Ends the request at the device although its client has left already; undefined: then it ends with its client. */
  abandon: (() => void) | undefined
  /** Called when `forward/` has finished with the request. */
  listener: ForwardEnd | undefined
  /** How often the head of the request was sent. */
  attempts: number
  /** The last attempt used a connection that was already open. */
  reused: boolean
  /** When the first attempt began, including the time to open a connection. */
  sentAt: number
  /** When the head of the final response arrived. */
  headAt: number
  /** When the response, if it is still in flight, becomes a stream; 0: never. A tunnel is a stream from its start. */
  streamAt: number
  /** Postern closed the tunnel because it was idle for `upstream.tunnel_idle_timeout`. */
  idle: boolean
  /** The status of the device's final response; 0 if it sent none. */
  deviceStatus: number
  /** The tolerant rules read the response. */
  tolerant: boolean
  /** Why the strict rules refuse the response. Empty unless it is the first response that they refuse. */
  deviation: string
  failure: UpstreamFailure | undefined
  /** The cause of the failure, as a clause, if the name of the failure does not tell it; otherwise empty. */
  cause: string
}

/** The memory of a request, and its end for the client: `listen/` is the only writer. */
export interface ClientFacts {
  /** The account of the client; undefined without a listener. */
  memory: ClientMemory | undefined
  /** The client holds too much memory, so the gate refuses the request as overloaded. HTTP/2 refuses the stream unread instead. */
  overMemory: boolean
  /** The status that was sent; 0 if the client left first. */
  status: number
  /** Undefined until it has ended. */
  outcome: Outcome | undefined
  requestBytes: number
  responseBytes: number
}

/**
 * One request and its response, for HTTP/1 and HTTP/2. It is created when the head is read (`listen/listener-exchange.ts`), filled in by
 * each room on its way, and recorded when it has ended. Each fact is written by one room and is read-only for the others: see `WrittenBy`.
 *
 * The response is one `respond`, or a `begin` followed by `write`s and an `end`, or a `cut`. The first call decides. A call that does not
 * belong to it does nothing.
 */
export interface Exchange extends Readonly<GateFacts & InFlight & DeviceFacts & ClientFacts> {
  readonly head: RequestHead

  /** True once a response head was sent or the client has left: no other response can follow. */
  readonly answered: boolean
  /**
   * The request body. The connection is read only as fast as the caller takes the pieces (back-pressure). Sends `100 Continue` first if the
   * client waits for it. Iteration fails if the client leaves, breaks the framing, or pauses longer than `stallTimeout` ms.
   */
  body(stallTimeout: number): AsyncIterable<Buffer>
  /**
   * Sends a complete own response, with the rate-limit fields (C16) and the request id (C22). `close` ends the connection (in HTTP/2 the
   * stream) after the response: the exchange does not wait for the rest of the request, and no later byte is read as a request.
   */
  respond(response: LocalResponse, close?: boolean): void
  /** Sends an interim response (RFC 9110 §15.2), if the client's HTTP version allows it. */
  inform(status: number, fields: Fields): void
  /** Sends the head, with the rate-limit fields after its own fields (C16). */
  begin(head: ResponseHead): void
  /** Returns false if the client reads more slowly than the sidecar writes (back-pressure). The caller then waits for `onDrain`. */
  write(chunk: Buffer): boolean
  /** Whether pieces of 512 KiB may be written. They cost less than small ones, but more bytes wait for the client. */
  readonly takesLarge: boolean
  end(lastChunk?: Buffer): void
  /** Aborts the response so that the client sees it broken. A truncated response never looks complete. */
  cut(): void
  /** True while the request body may have unread bytes. */
  readonly unread: boolean
  /** How many bytes of the request body have arrived, read or not; `Infinity` when all have arrived or there is no body. */
  readonly arrived: number
  /** True once the rest of the request body can no longer arrive. */
  readonly broken: boolean
  /** Waits for the first bytes of the request body, or its end. Sends `100 Continue` and fails as `body` does. Called once. */
  arrival(stallTimeout: number): Promise<void>
  /**
   * The listener is called when the rest of the request body can no longer arrive, but the client may still read a response: the client
   * half-closed the connection too early, or broke the framing. If that has already happened, the listener is called immediately. If the
   * client leaves, the exchange ends instead.
   */
  onBroken(listener: () => void): void
  /** The listener is called each time the queued bytes have drained. A later listener replaces the earlier one. */
  onDrain(listener: () => void): void
  /** True once the exchange has ended, by either side. */
  readonly ended: boolean
  /** The listener is called once, when the exchange has ended for any reason. */
  onEnd(listener: () => void): void
}

/** The facts of an exchange by the room that writes them. */
interface Facts {
  readonly gate: GateFacts & InFlight
  readonly forward: DeviceFacts
  readonly record: object
}

/** The derived values of a head by the room that writes them. */
interface Derivations {
  readonly gate: DerivedByGate
  readonly forward: DerivedByForward
  readonly record: DerivedByRecord
}

declare const writer: unique symbol

/**
 * An exchange as one room sees it: the facts of the room are writable. The mark exists only for the compiler. Without it the compiler would
 * accept any exchange, because it ignores `readonly` when it compares types. One file of each room makes the only cast to this view:
 * `gate/gate-exchange.ts`, `forward/forward-exchange.ts` and `record/record-exchange.ts`. `listen/` needs no view, because it owns the
 * class.
 */
export type WrittenBy<Room extends keyof Facts> = Exchange &
  Facts[Room] & {
    readonly head: RequestHead & Derivations[Room]
    readonly [writer]: Readonly<Record<Room, true>>
  }

declare const admitted: unique symbol

/**
 * A request that may reach the device: the exchange, with a mark that exists only for the compiler. Only `gate/admit.ts` sets the mark, and
 * `forward/` accepts no other exchange. So code that skips the limit or the token does not compile (`test/types/admission.ts`).
 */
export type Forward<E extends Exchange = Exchange> = E & {
  readonly kind: 'forward'
  readonly [admitted]: true
}

/** A request after the decision of the gate. */
export type Admission<E extends Exchange = Exchange> =
  | Forward<E>
  | (E & { readonly kind: 'own-endpoint' })
  | (E & { readonly kind: 'refused'; readonly refusal: Refusal })

/** An exchange whose client asks for an upgrade of the connection. */
export interface UpgradeExchange extends Exchange {
  readonly connection: Duplex
  /** Reads the connection until `tunnelled`, because only a read detects a reset by the client. The bytes of the client are buffered. */
  watch(): void
  /**
   * Call this when the upgrade has succeeded. The connection is then a tunnel, and the exchange ends when the connection closes. Returns
   * the bytes that the client sent after the head: they cannot be unshifted once Node has read the client's FIN.
   */
  tunnelled(): Buffer
}
