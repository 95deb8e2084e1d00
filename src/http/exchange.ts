import type { Duplex } from 'node:stream'
import type { Endpoint } from './admission.ts'
import type { Fields } from './fields.ts'
import type { HeadSurvey, RequestFraming } from './head-survey.ts'
import type { Refusal } from './refusal.ts'
import type { Reply } from './reply.ts'

/** The head of a request as a client sent it, whatever the HTTP version. Nothing in it is trusted yet. */
export interface RequestHead {
  readonly version: '1.0' | '1.1' | '2'
  readonly secure: boolean
  readonly method: string
  /** The request target, byte for byte (`:path` in HTTP/2). */
  readonly target: string
  /** `:authority`, only in HTTP/2; in HTTP/1 the name of the host stands in `fields`. */
  readonly authority: string | undefined
  /** All header fields, pseudo-headers excluded. */
  readonly fields: Fields
  /** The address of the peer that opened the connection; empty for a Unix socket. */
  readonly peer: string
  /** The port of the listener that took the connection; 0 for a Unix socket. */
  readonly localPort: number
  /** Whether the request asks for a WebSocket on this connection (HTTP/1.1 `Upgrade`). Other offers are ignored. */
  readonly upgrade: boolean
  readonly framing: RequestFraming
  /** What is known of `fields` without reading them again. */
  readonly survey: HeadSurvey
}

/** The head of a forwarded response; the body follows in pieces. */
export interface ResponseHead {
  readonly status: number
  readonly reason: string
  readonly fields: Fields
  /** `fields` is an array that comes again, so what is made of it can be kept. */
  readonly repeated?: boolean
  /** The sidecar's fields, which follow the device's. */
  readonly own?: Fields
}

/** How an exchange ended: what `record/` is told, once. */
export interface Outcome {
  /** The status sent, or 0 when the client left before there was one. */
  readonly status: number
  /** `complete`: the whole response was handed to the kernel; `aborted`: the client left; `cut`: we broke it off. */
  readonly end: 'complete' | 'aborted' | 'cut'
  readonly requestBytes: number
  readonly responseBytes: number
}

/** What is recorded of each exchange, once, when it has ended. */
export interface ExchangeRecord {
  readonly head: RequestHead
  readonly requestId: string
  /** The grant whose token let the request through; undefined where none did. */
  readonly grant: string | undefined
  readonly endpoint: Endpoint
  readonly client: string
  /** What the sidecar answered instead of the device, if it did. */
  readonly refusal: Refusal | undefined
  /** What it would have answered if the gate were not only observing. */
  readonly wouldRefuse: Refusal | undefined
  readonly outcome: Outcome
  /** Milliseconds from the request head to the end. */
  readonly duration: number
}

/**
 * One request and its response, alike for HTTP/1 and HTTP/2. The response is either one `reply`, or a `begin`
 * followed by `write`s and an `end`, or a `cut`; whichever comes first wins and later calls do nothing.
 */
export interface Exchange {
  readonly head: RequestHead
  /** True once a response head was sent or the client has gone: nothing can be answered any more. */
  readonly answered: boolean
  /** True once the exchange has ended, by either side. */
  readonly ended: boolean
  /** True while there may be unread bytes of the request body. */
  readonly unread: boolean
  /** True once the rest of the request body can never come. */
  readonly broken: boolean
  /**
   * The request body, read only when asked for, with back-pressure. Sends `100 Continue` first if the client
   * waits for it. Fails when the client leaves, breaks the framing, or pauses longer than `stallTimeout` ms.
   */
  body(stallTimeout: number): AsyncIterable<Buffer>
  /**
   * Answers whole. `close` ends the connection (in HTTP/2 the stream) behind the answer: what is still underway is
   * not waited for, and what follows is never read as a request.
   */
  reply(reply: Reply, options?: { readonly close?: boolean }): void
  /** An interim response (RFC 9110 §15.2), as far as the client's protocol can carry it. */
  inform(status: number, fields: Fields): void
  begin(head: ResponseHead): void
  /** False when the client is slower than we are: wait for `onDrain`. */
  write(chunk: Buffer): boolean
  end(lastChunk?: Buffer): void
  /** Breaks the transfer so that the client sees it broken, never short and whole. */
  cut(): void
  /**
   * `othersWait` tells whether other requests wait for this one's place at the device: a half-closed client, which may have
   * left, is probed only while it does. A later function replaces the earlier one.
   */
  contestedWhile(othersWait: () => boolean): void
  /** Called whenever the client has caught up. A later listener replaces the earlier one. */
  onDrain(listener: () => void): void
  /**
   * Called once the rest of the request body can never come, although the client may still be there for an answer: it
   * has closed its sending side too early, or broken the framing. A client that is gone ends the exchange instead. If that
   * has happened already, the listener is called at once.
   */
  onBroken(listener: () => void): void
  /** Called once, when the exchange has ended in any way. */
  onEnd(listener: (outcome: Outcome) => void): void
}

/** An exchange that may leave HTTP: the client asked to upgrade this connection. */
export interface UpgradeExchange extends Exchange {
  readonly connection: Duplex
  /** Reads the connection until `tunnelled`, only to notice a client that resets it; what it sends is kept. */
  watch(): void
  /**
   * The upgrade went through: from here on the connection is a tunnel, and the exchange ends when it closes. Gives the
   * bytes that the client has sent behind the head: they cannot be unshifted once Node has read the client's FIN.
   */
  tunnelled(): Buffer
}

/** The client paused within the body of its request for longer than it may. */
export class StalledBodyError extends Error {
  override readonly name = 'StalledBodyError'
  constructor() {
    super('the request body stalled')
  }
}

/** The client left within the body of its request, or broke its framing. */
export class BrokenBodyError extends Error {
  override readonly name = 'BrokenBodyError'
  constructor() {
    super('the request body broke off')
  }
}

export const BROKEN_BODY: Refusal = { kind: 'malformed', description: 'The request body broke off.' }

/** The refusal for a client whose body stalled or broke off; undefined for any other error. */
export function bodyFault(error: unknown): Refusal | undefined {
  if (error instanceof StalledBodyError) return { kind: 'request-timeout' }
  return error instanceof BrokenBodyError ? BROKEN_BODY : undefined
}
