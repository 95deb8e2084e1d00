import type { Duplex } from 'node:stream'
import type { GateFacts } from './admission.ts'
import type { Derived, DerivedByForward, DerivedByGate, DerivedByRecord } from './derived.ts'
import type { Fields } from './fields.ts'
import type { HeadSurvey, RequestFraming } from './head-survey.ts'
import type { Refusal, Reply, UpstreamFailure } from './refusal.ts'

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
  /** Whether the request asks for a WebSocket on this connection (HTTP/1.1 `Upgrade`). Other offers are ignored. */
  readonly upgrade: boolean
  readonly framing: RequestFraming
  /** What later steps need of `fields`, so that they do not search them again. */
  readonly survey: HeadSurvey
}

/** The head of a forwarded response; the body follows in pieces. */
export interface ResponseHead {
  readonly status: number
  /** Undefined: the usual phrase. */
  readonly reason?: string
  readonly fields: Fields
  /** What the device itself says about caches, if `fields` may say something else. */
  readonly said?: Fields
  /** The same object is sent for each response with this head, so results derived from it can be cached. */
  readonly reusable?: boolean
}

/** How an exchange ended. `complete`: the kernel took the whole response. `aborted`: the client left. `cut`: the sidecar broke it off. */
export type Outcome = 'complete' | 'aborted' | 'cut'

/** What follows when a request has been forwarded. One of the methods is called, once for each request. */
export interface ForwardEnd {
  /** @param refusal to send to the client; undefined if the client has a response or has left */
  readonly ended: (request: Exchange, refusal: Refusal | undefined) => void
  /** A bug of the sidecar ended the request. */
  readonly onBug: (request: Exchange, bug: unknown) => void
}

/** What the side of the device tells and asks about a request. */
export interface ForwardListener extends ForwardEnd {
  /** Whether a refusal is sent. If not, the gate only observes: it notes the refusal, and the request goes on. */
  readonly refuses: (request: Exchange, refusal: Refusal) => boolean
}

/** The client, as the side of the device sees it: one response goes to it. */
export type ClientSide = Pick<
  Exchange,
  'answered' | 'ended' | 'inform' | 'begin' | 'takesLarge' | 'write' | 'end' | 'cut' | 'onDrain' | 'onEnd'
>

/** The account of the client, as the stations of a request see it (C26). */
export interface ClientMemory {
  /** Whether the client may make the process hold so many bytes more of request bodies. */
  mayHold(bytes: number): boolean
  /** Charges the client for the bytes of bodies that are held for it; a negative change gives them back. */
  hold(change: number): void
  /** A live grant has admitted a request of the client. */
  admitted(grant: string): void
}

/** How the gate holds an exchange in flight: `gate/` is the only writer. */
export interface InFlight {
  /** Called once, with this exchange, before the other listeners of its end. */
  recorder: ((exchange: Exchange) => void) | undefined
  /** Other exchanges in flight: see `gate/live-exchanges.ts`. */
  newer: WrittenBy<'gate'> | undefined
  older: WrittenBy<'gate'> | undefined
}

/**
 * What happens to a request on its way to the device and there: `forward/` is the only writer. Instants are in ms on the monotonic clock;
 * 0: it did not happen.
 */
export interface DeviceFacts {
  /** The path of a service of `upstream.routes`; empty for the main service; undefined if the request fits no service. */
  route: string | undefined
  /** How long the request waited in queues (ms): for buffering its upload, and for its place at the device. */
  waited: number
  /** How many places the device had when the wait for one was over. */
  places: number
  /**
   * Whether other requests wait for this one's place at the device. A half-closed HTTP/1 client may have left; it is probed only while
   * they do. (An HTTP/2 client that leaves resets its stream or closes its session.)
   */
  othersWait: (() => boolean) | undefined
  /** Gives its place at the device back, which happens at its end otherwise. */
  leavePlace: (() => void) | undefined
  /** Told when the side of the device is done with it. */
  listener: ForwardEnd | undefined
  /** How often the head of the request was sent. */
  attempts: number
  /** The last attempt used a connection that was already open. */
  reused: boolean
  /** When the first attempt began, with opening a connection if none was open. */
  sentAt: number
  /** When the head of the final response came. */
  headAt: number
  /** When the response, if it still runs, becomes a stream (ms on the monotonic clock); 0: never. A tunnel is one from its start. */
  streamAt: number
  /** Postern closed the tunnel because no byte passed it for `upstream.tunnel_idle_timeout`. */
  idle: boolean
  /** The status of the device's final response; 0 if it sent none. */
  deviceStatus: number
  /** The response was read by the tolerant rules. */
  tolerant: boolean
  /** Why the strict rules refuse the response. Empty unless it is the first response that they refuse. */
  deviation: string
  failure: UpstreamFailure | undefined
  /** Why it failed, as a clause, if the name of the failure does not say it; otherwise empty. */
  cause: string
}

/** What a request costs and how it ends for its client: `listen/` is the only writer. */
export interface ClientFacts {
  /** The account of its client; undefined without a listener. */
  memory: ClientMemory | undefined
  /** Its client holds too much, so the gate refuses it as overloaded. HTTP/2 never sets this: it refuses the stream unread. */
  overMemory: boolean
  /** The status that was sent; 0 if the client left before. */
  status: number
  /** Undefined until it has ended. */
  outcome: Outcome | undefined
  requestBytes: number
  responseBytes: number
}

/**
 * One request and its response, the same for HTTP/1 and HTTP/2: born when the head is read (`listen/exchange.ts`), filled in by each room
 * on its way, and recorded when it has ended. Each fact has one room that writes it, and is read-only for the others: see `WrittenBy`.
 *
 * The response is either one `reply`, or a `begin` followed by `write`s and an `end`, or a `cut`. The first of these calls decides, and
 * later ones that do not belong to it do nothing.
 */
export interface Exchange extends Readonly<GateFacts & InFlight & DeviceFacts & ClientFacts> {
  readonly head: RequestHead

  /** True once a response head was sent or the client has left: no other response can follow. */
  readonly answered: boolean
  /**
   * The request body. It is read only as fast as the caller takes it. Sends `100 Continue` first if the client waits for it.
   * Fails if the client leaves, breaks the framing, or pauses longer than `stallTimeout` ms.
   */
  body(stallTimeout: number): AsyncIterable<Buffer>
  /**
   * Sends a complete response of the sidecar's own, with the rate-limit fields (C16) and the request id (C22). `close` ends the
   * connection (in HTTP/2 the stream) after the response: the exchange does not wait for the rest of the request, and no byte after
   * it is read as a request.
   */
  reply(reply: Reply, close?: boolean): void
  /** Sends an interim response (RFC 9110 §15.2), if the client's HTTP version allows it. */
  inform(status: number, fields: Fields): void
  /** Sends the head with the rate-limit fields behind its own (C16). */
  begin(head: ResponseHead): void
  /** Returns false if the client reads more slowly: the caller then waits for `onDrain`. */
  write(chunk: Buffer): boolean
  /** Whether pieces of half a MiB may be written. They cost less than small ones, but more bytes wait for the client. */
  readonly takesLarge: boolean
  end(lastChunk?: Buffer): void
  /** Breaks the response off so that the client sees it broken. A truncated response never looks complete. */
  cut(): void
  /** True while the request body may have unread bytes. */
  readonly unread: boolean
  /** How many bytes of the request body have arrived, read or not; `Infinity` once all have, or if it has none. */
  readonly arrived: number
  /** True once the rest of the request body can no longer arrive. */
  readonly broken: boolean
  /** Waits for the first bytes of the request body, or its end. Sends `100 Continue` and fails as `body` does. Called once. */
  arrival(stallTimeout: number): Promise<void>
  /**
   * Called when the rest of the request body can no longer arrive, but the client may still read a response: it half-closed the
   * connection too early, or broke the framing. If that has already happened, the listener is called immediately. If the client
   * leaves, the exchange ends instead.
   */
  onBroken(listener: () => void): void
  /** Called each time the client has read the backlog. A later listener replaces the earlier one. */
  onDrain(listener: () => void): void
  /** True once the exchange has ended, by either side. */
  readonly ended: boolean
  /** Called once, when the exchange has ended for any reason. */
  onEnd(listener: () => void): void
}

/** The rooms that write facts into an exchange, and those that they write. */
interface Facts {
  readonly gate: GateFacts & InFlight
  readonly forward: DeviceFacts
  readonly record: object
}

/** The rooms that keep with a head what they derive from it. */
interface Derivations {
  readonly gate: DerivedByGate
  readonly forward: DerivedByForward
  readonly record: DerivedByRecord
}

declare const writer: unique symbol

/**
 * An exchange as one room sees it: what the room writes is writable. The mark exists only for the compiler, which would otherwise take
 * any exchange for it: read-only properties do not count when it compares types. One file of each room grants this view, by the only cast
 * to it: `gate/gate-exchange.ts`, `forward/forwarded.ts` and `record/recorded.ts`. The listener needs none, because the class is its own.
 */
export type WrittenBy<Room extends keyof Facts> = Exchange &
  Facts[Room] & {
    readonly head: RequestHead & Derivations[Room]
    readonly [writer]: Readonly<Record<Room, true>>
  }

declare const admitted: unique symbol

/**
 * A request that may reach the device: the exchange itself, with a mark that exists only for the compiler. Only `gate/admit.ts` sets
 * it, and `forward/` takes nothing else: code that skips the limit or the token does not compile (`test/types/admission.ts`).
 */
export type Forward<E extends Exchange = Exchange> = E & {
  readonly kind: 'forward'
  readonly [admitted]: true
}

/** A request about which the gate has decided. */
export type Admission<E extends Exchange = Exchange> =
  | Forward<E>
  | (E & { readonly kind: 'own-endpoint' })
  | (E & { readonly kind: 'refused'; readonly refusal: Refusal })

/** An exchange whose client asks to upgrade the connection. */
export interface UpgradeExchange extends Exchange {
  readonly connection: Duplex
  /** Reads the connection until `tunnelled`, to notice if the client resets it. What the client sends is buffered. */
  watch(): void
  /**
   * Called when the upgrade succeeded. From now on the connection is a tunnel, and the exchange ends when it closes. Returns the
   * bytes that the client sent after the head: they cannot be unshifted once Node has read the client's FIN.
   */
  tunnelled(): Buffer
}
