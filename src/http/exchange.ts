import type { Duplex } from 'node:stream'
import type { Admission } from './admission.ts'
import type { Fields } from './fields.ts'
import type { HeadSurvey, RequestFraming } from './head-survey.ts'
import type { Refusal } from './refusal.ts'
import type { Reply } from './reply.ts'

/** The head of a request as the client sent it, in any HTTP version. Nothing in it is trusted yet. */
export interface RequestHead {
  readonly version: '1.0' | '1.1' | '2'
  readonly secure: boolean
  readonly method: string
  /** The request target, byte for byte (`:path` in HTTP/2). */
  readonly target: string
  /** `:authority`, only in HTTP/2. In HTTP/1 the host is in `fields`. */
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
  readonly reason: string
  readonly fields: Fields
  /** `fields` is the same array for each response with this head, so results derived from it can be cached. */
  readonly reusable?: boolean
  /** The rate-limit fields, which follow `fields`. */
  readonly limitFields?: Fields
}

/** How an exchange ended, for `record/`. */
export interface Outcome {
  /** The status that was sent; 0 if the client left before. */
  readonly status: number
  /** `complete`: the kernel took the whole response. `aborted`: the client left. `cut`: the sidecar broke the response off. */
  readonly end: 'complete' | 'aborted' | 'cut'
  readonly requestBytes: number
  readonly responseBytes: number
}

/** What is recorded of each exchange, once, when it ends. */
export interface ExchangeRecord {
  readonly head: RequestHead
  readonly admission: Admission
  /** The grant of the token that admitted the request, or of the tokens in the response; undefined if there is none. */
  readonly grant: string | undefined
  /** The refusal that the sidecar sent; undefined if it sent none. */
  readonly refusal: Refusal | undefined
  readonly outcome: Outcome
  /** Milliseconds from the request head to the end. */
  readonly duration: number
  /** When the request head was read (ms on the monotonic clock). */
  readonly start: number
  /** How long the gate waited for another process: the shared store (ms). */
  readonly lookup: number
}

/**
 * One request and its response, the same for HTTP/1 and HTTP/2. The response is either one `reply`, or a `begin` followed by
 * `write`s and an `end`, or a `cut`. The first of these calls decides, and later ones that do not belong to it do nothing.
 */
export interface Exchange {
  readonly head: RequestHead
  /** True once a response head was sent or the client has left: no other response can follow. */
  readonly answered: boolean
  /** True once the exchange has ended, by either side. */
  readonly ended: boolean
  /** True while the request body may have unread bytes. */
  readonly unread: boolean
  /** True once the rest of the request body can no longer arrive. */
  readonly broken: boolean
  /** How many bytes of the request body have arrived, read or not; `Infinity` once all have, or if it has none. */
  readonly arrived: number
  /** Waits for the first bytes of the request body, or its end. Sends `100 Continue` and fails as `body` does. Called once. */
  arrival(stallTimeout: number): Promise<void>
  /**
   * The request body. It is read only as fast as the caller takes it. Sends `100 Continue` first if the client waits for it.
   * Fails if the client leaves, breaks the framing, or pauses longer than `stallTimeout` ms.
   */
  body(stallTimeout: number): AsyncIterable<Buffer>
  /**
   * Sends a complete response. `close` ends the connection (in HTTP/2 the stream) after the response: the exchange does not wait
   * for the rest of the request, and no byte after it is read as a request.
   */
  reply(reply: Reply, options?: { readonly close?: boolean }): void
  /** Sends an interim response (RFC 9110 §15.2), if the client's HTTP version allows it. */
  inform(status: number, fields: Fields): void
  begin(head: ResponseHead): void
  /** Returns false if the client reads more slowly: the caller then waits for `onDrain`. */
  write(chunk: Buffer): boolean
  end(lastChunk?: Buffer): void
  /** Breaks the response off so that the client sees it broken. A truncated response never looks complete. */
  cut(): void
  /**
   * `othersWait` returns whether other requests wait for this one's place at the device. A half-closed client may have left; it
   * is probed only while others wait. A later call replaces the function.
   */
  contestedWhile(othersWait: () => boolean): void
  /** Called each time the client has read the backlog. A later listener replaces the earlier one. */
  onDrain(listener: () => void): void
  /**
   * Called when the rest of the request body can no longer arrive, but the client may still read a response: it half-closed the
   * connection too early, or broke the framing. If that has already happened, the listener is called immediately. If the client
   * leaves, the exchange ends instead.
   */
  onBroken(listener: () => void): void
  /** Called once, when the exchange has ended for any reason. */
  onEnd(listener: (outcome: Outcome) => void): void
}

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

/** The client paused too long within its request body. */
export class StalledBodyError extends Error {
  override readonly name = 'StalledBodyError'
  constructor() {
    super('the request body stalled')
  }
}

/** The client left within its request body, or broke the framing. */
export class BrokenBodyError extends Error {
  override readonly name = 'BrokenBodyError'
  constructor() {
    super('the request body broke off')
  }
}

export const BROKEN_BODY: Refusal = { kind: 'malformed', description: 'The request body broke off.' }

/** The refusal if a request body stalled or broke off; undefined for any other error. */
export function bodyFault(error: unknown): Refusal | undefined {
  if (error instanceof StalledBodyError) return { kind: 'request-timeout' }
  return error instanceof BrokenBodyError ? BROKEN_BODY : undefined
}
