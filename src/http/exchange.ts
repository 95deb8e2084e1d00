import type { Duplex } from 'node:stream'
import { type Derived, GateFacts } from './admission.ts'
import type { Fields } from './fields.ts'
import type { HeadSurvey, RequestFraming } from './head-survey.ts'
import type { Refusal, Reply, UpstreamFailure } from './refusal.ts'
import type { RequestBody } from './request-body.ts'

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
  /** The same object is sent for each response with this head, so results derived from it can be cached. */
  readonly reusable?: boolean
}

/** How an exchange ended. `complete`: the kernel took the whole response. `aborted`: the client left. `cut`: the sidecar broke it off. */
export type Outcome = 'complete' | 'aborted' | 'cut'

/** What follows when a request has been forwarded. One of the methods is called, once for each request. */
export interface ForwardListener {
  /** @param refusal to send to the client; undefined if the client has a response or has left */
  ended(request: Exchange, refusal: Refusal | undefined): void
  /** A bug of the sidecar ended the request. */
  onBug(request: Exchange, bug: unknown): void
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

type EndListener = () => void

/** What the gate writes, for the others. */
const Decided: new () => Readonly<GateFacts> = GateFacts

/**
 * One request and its response, the same for HTTP/1 and HTTP/2: born when the head is read, filled in by each station on its way, and
 * recorded when it has ended. The response is either one `reply`, or a `begin` followed by `write`s and an `end`, or a `cut`. The
 * first of these calls decides, and later ones that do not belong to it do nothing.
 */
export abstract class Exchange extends Decided {
  readonly head: RequestHead
  /** Other exchanges in flight: see `gate/live-exchanges.ts`. */
  newer: Exchange | undefined = undefined
  older: Exchange | undefined = undefined

  // What happens at the device: `forward/` fills it in. Instants are in ms on the monotonic clock; 0: it did not happen.
  /** The path of a service of `upstream.routes`; empty for the main service; undefined if the request fits no service. */
  route: string | undefined = undefined
  /** How long the request waited in queues (ms): for buffering its upload, and for its place at the device. */
  waited = 0
  /** How many places the device had when the wait for one was over. */
  places = 0
  /**
   * Whether other requests wait for this one's place at the device. A half-closed HTTP/1 client may have left; it is probed only while
   * they do. (An HTTP/2 client that leaves resets its stream or closes its session.)
   */
  othersWait: (() => boolean) | undefined = undefined
  /** Gives its place at the device back, which happens at its end otherwise. */
  leavePlace: (() => void) | undefined = undefined
  /** Told when the side of the device is done with it. */
  listener: ForwardListener | undefined = undefined
  /** How often the head of the request was sent. */
  attempts = 0
  /** The last attempt used a connection that was already open. */
  reused = false
  /** When the first attempt began, with opening a connection if none was open. */
  sentAt = 0
  /** When the head of the final response came. */
  headAt = 0
  /** When the response, if it still runs, becomes a stream (ms on the monotonic clock); 0: never. A tunnel is one from its start. */
  streamAt = 0
  /** The status of the device's final response; 0 if it sent none. */
  deviceStatus = 0
  /** The response was read by the tolerant rules. */
  tolerant = false
  /** Why the strict rules refuse the response. Empty unless it is the first response that they refuse. */
  deviation = ''
  failure: UpstreamFailure | undefined = undefined
  /** Why it failed, as a clause, if the name of the failure does not say it; otherwise empty. */
  cause = ''

  // What it costs: `listen/` fills it in.
  /** The account of its client; undefined without a listener. */
  memory: ClientMemory | undefined = undefined
  /** Its client holds too much, so the gate refuses it as overloaded. HTTP/2 never sets this: it refuses the stream unread. */
  overMemory = false

  // How it ended: `listen/` fills it in.
  /** The status that was sent; 0 if the client left before. */
  status = 0
  outcome: Outcome | undefined = undefined
  requestBytes = 0
  responseBytes = 0
  /** Called once, with this exchange, before the other listeners of its end. */
  recorder: ((exchange: Exchange) => void) | undefined = undefined
  #onEnd: EndListener | EndListener[] | undefined = undefined
  #onDrain: (() => void) | undefined = undefined
  /** Undefined if the request has none, and over HTTP/2 until it is read. */
  protected requestBody: RequestBody | undefined

  constructor(head: RequestHead, body?: RequestBody) {
    super()
    this.head = head
    this.requestBody = body
  }

  /** True once a response head was sent or the client has left: no other response can follow. */
  abstract readonly answered: boolean
  /**
   * The request body. It is read only as fast as the caller takes it. Sends `100 Continue` first if the client waits for it.
   * Fails if the client leaves, breaks the framing, or pauses longer than `stallTimeout` ms.
   */
  abstract body(stallTimeout: number): AsyncIterable<Buffer>
  /**
   * Sends a complete response of the sidecar's own, with the rate-limit fields (C16) and the request id (C22). `close` ends the
   * connection (in HTTP/2 the stream) after the response: the exchange does not wait for the rest of the request, and no byte after
   * it is read as a request.
   */
  abstract reply(reply: Reply, close?: boolean): void
  /** Sends an interim response (RFC 9110 §15.2), if the client's HTTP version allows it. */
  abstract inform(status: number, fields: Fields): void
  /** Sends the head with the rate-limit fields behind its own (C16). */
  abstract begin(head: ResponseHead): void
  /** Returns false if the client reads more slowly: the caller then waits for `onDrain`. */
  abstract write(chunk: Buffer): boolean
  /** Whether pieces of half a MiB may be written. They cost less than small ones, but more bytes wait for the client. */
  abstract readonly takesLarge: boolean
  abstract end(lastChunk?: Buffer): void
  /** Breaks the response off so that the client sees it broken. A truncated response never looks complete. */
  abstract cut(): void

  /** True while the request body may have unread bytes. */
  get unread(): boolean {
    return this.requestBody?.unread === true
  }

  /** How many bytes of the request body have arrived, read or not; `Infinity` once all have, or if it has none. */
  get arrived(): number {
    return this.requestBody?.arrived ?? Number.POSITIVE_INFINITY
  }

  /** True once the rest of the request body can no longer arrive. */
  get broken(): boolean {
    return this.requestBody?.broken === true
  }

  /** Waits for the first bytes of the request body, or its end. Sends `100 Continue` and fails as `body` does. Called once. */
  async arrival(stallTimeout: number): Promise<void> {
    this.body(stallTimeout)
    await this.requestBody?.arrival()
  }

  /**
   * Called when the rest of the request body can no longer arrive, but the client may still read a response: it half-closed the
   * connection too early, or broke the framing. If that has already happened, the listener is called immediately. If the client
   * leaves, the exchange ends instead.
   */
  onBroken(listener: () => void): void {
    this.requestBody?.onBroken(listener)
  }

  /** Called each time the client has read the backlog. A later listener replaces the earlier one. */
  onDrain(listener: () => void): void {
    this.#onDrain = listener
  }

  /** The client has read the backlog. */
  drained(): void {
    this.#onDrain?.()
  }

  /** True once the exchange has ended, by either side. */
  get ended(): boolean {
    return this.outcome !== undefined
  }

  /** Called once, when the exchange has ended for any reason. */
  onEnd(listener: EndListener): void {
    if (this.outcome !== undefined) listener()
    else if (this.#onEnd === undefined) this.#onEnd = listener
    else if (Array.isArray(this.#onEnd)) this.#onEnd.push(listener)
    else this.#onEnd = [this.#onEnd, listener]
  }

  /** Ends the exchange, once. Its connection or stream calls this. */
  settle(outcome: Outcome): void {
    if (this.outcome !== undefined) return
    if (this.requestBody !== undefined) {
      this.requestBody.drop()
      this.requestBytes = this.requestBody.bytes
    }
    this.outcome = outcome
    this.recorder?.(this)
    const listeners = this.#onEnd
    this.#onEnd = undefined
    if (typeof listeners === 'function') listeners()
    else if (listeners !== undefined) for (const listener of listeners) listener()
  }
}

/** The same for the gate, which writes what it finds out. */
export type GateExchange = Exchange & GateFacts

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
