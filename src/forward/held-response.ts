import type { OwnResponse } from '../device/own-request.ts'
import type { Exchange, Outcome, RequestHead, ResponseHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { Reply } from '../http/reply.ts'

export interface HoldingRules {
  /** Sees the head of every answer; true to keep this one from the client for now. */
  readonly holds: (answer: OwnResponse) => boolean
  /** The header as the client shall see it. */
  readonly conceal: (fields: Fields) => Fields
  /** The request body, in place of the client's own. */
  readonly body: (stallTimeout: number) => AsyncIterable<Buffer>
}

interface Kept {
  readonly head: ResponseHead
  readonly chunks: Buffer[]
  size: number
}

/** A challenge is a short page; a longer answer (bytes) is let through while it comes. */
const LARGEST_HELD = 64 * 1024

/** Stands in for the client's exchange and holds a response back until it is known whether the request is repeated. */
export class HoldingExchange implements Exchange {
  readonly #inner: Exchange
  readonly #rules: HoldingRules
  #kept: Kept | undefined
  #whole = false

  constructor(inner: Exchange, rules: HoldingRules) {
    this.#inner = inner
    this.#rules = rules
  }

  /** The answer that is held, once it is there to its end. */
  get held(): OwnResponse | undefined {
    return this.#whole ? this.#kept?.head : undefined
  }

  /** Lets the held answer go to the client after all. One that broke off goes nowhere. */
  release(): void {
    if (this.#whole && this.#kept !== undefined) this.#letGo(this.#kept)
  }

  #letGo(kept: Kept): boolean {
    this.#kept = undefined
    this.#pass(kept.head)
    const writable = kept.chunks.map((chunk) => this.#inner.write(chunk)).every(Boolean)
    if (this.#whole) this.#inner.end()
    return writable
  }

  begin(head: ResponseHead): void {
    if (this.#rules.holds(head)) this.#kept = { head, chunks: [], size: 0 }
    else this.#pass(head)
  }

  write(chunk: Buffer): boolean {
    const kept = this.#kept
    if (kept === undefined) return this.#inner.write(chunk)
    kept.chunks.push(chunk)
    kept.size += chunk.length
    return kept.size <= LARGEST_HELD || this.#letGo(kept)
  }

  end(lastChunk?: Buffer): void {
    if (this.#kept === undefined) this.#inner.end(lastChunk)
    else {
      if (lastChunk !== undefined) this.#kept.chunks.push(lastChunk)
      this.#whole = true
    }
  }

  cut(): void {
    this.#kept = undefined
    this.#inner.cut()
  }

  body(stallTimeout: number): AsyncIterable<Buffer> {
    return this.#rules.body(stallTimeout)
  }

  get head(): RequestHead {
    return this.#inner.head
  }

  get answered(): boolean {
    return this.#inner.answered
  }

  get ended(): boolean {
    return this.#inner.ended
  }

  get broken(): boolean {
    return this.#inner.broken
  }

  get unread(): boolean {
    return this.#inner.unread
  }

  reply(reply: Reply, options?: { readonly close?: boolean }): void {
    this.#inner.reply(reply, options)
  }

  inform(status: number, fields: Fields): void {
    this.#inner.inform(status, fields)
  }

  contestedWhile(othersWait: () => boolean): void {
    this.#inner.contestedWhile(othersWait)
  }

  onDrain(listener: () => void): void {
    this.#inner.onDrain(listener)
  }

  onBroken(listener: () => void): void {
    this.#inner.onBroken(listener)
  }

  onEnd(listener: (outcome: Outcome) => void): void {
    this.#inner.onEnd(listener)
  }

  #pass(head: ResponseHead): void {
    this.#inner.begin({ ...head, fields: this.#rules.conceal(head.fields), repeated: false })
  }
}
