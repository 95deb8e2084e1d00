import type { Fields } from '../http/fields.ts'

/** What an attempt at the device tells of it, in this order; `end` or `failed` comes once, and last. */
export interface ResponseHandler {
  /** An interim answer (RFC 9110 §15.2). */
  inform(status: number, fields: Fields): void
  head(status: number, reason: string, fields: Fields): void
  data(chunk: Buffer): void
  /** Nothing more of the answer comes; `last` where its end came with a piece of it. */
  end(last?: Buffer): void
  /** @param silent the device has not sent a byte */
  failed(error: unknown, silent: boolean): void
}

/** The hold that the handler has on what it is told. */
export interface Transfer {
  /** Nothing more is read until `resume`. */
  pause(): void
  resume(): void
  /** Ends the attempt, and its connection where anything was sent: the handler is told `error` before this returns. */
  abort(error: unknown): void
}
