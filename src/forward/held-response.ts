import type { OwnResponse } from '../device/own-request.ts'
import type { ClientSide, ResponseHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'

export interface HoldingRules {
  /** Called with the head of each response. True: the response is held back for now. */
  readonly holds: (response: OwnResponse) => boolean
  /** Turns the device's header fields into the client's. */
  readonly conceal: (fields: Fields) => Fields
  /** The request body that replaces the client's. */
  readonly body: (stallTimeout: number) => AsyncIterable<Buffer>
}

interface HeldResponse {
  readonly head: ResponseHead
  readonly chunks: Buffer[]
  size: number
}

/** A challenge is a short page. A response larger than this (bytes) goes to the client at once. */
const LARGEST_HELD = 64 * 1024

/** Takes the place of the client, and holds a response back until it is known whether the request is repeated. */
export class HoldingClient implements ClientSide {
  readonly #inner: ClientSide
  readonly #rules: HoldingRules
  #response: HeldResponse | undefined
  #complete = false

  constructor(inner: ClientSide, rules: HoldingRules) {
    this.#inner = inner
    this.#rules = rules
  }

  /** The held response; undefined until it is complete. */
  get held(): OwnResponse | undefined {
    return this.#complete ? this.#response?.head : undefined
  }

  /** Sends the held response to the client, if it is complete. */
  release(): void {
    if (this.#complete && this.#response !== undefined) this.#forward(this.#response)
  }

  #forward(held: HeldResponse): boolean {
    this.#response = undefined
    this.#pass(held.head)
    const writable = held.chunks.map((chunk) => this.#inner.write(chunk)).every(Boolean)
    if (this.#complete) this.#inner.end()
    return writable
  }

  /** Reports the head of a response that is not held back, that of a tunnel. Returns its fields for the client. */
  observe(head: ResponseHead): Fields {
    this.#rules.holds(head)
    return this.#rules.conceal(head.fields)
  }

  begin(head: ResponseHead): void {
    if (this.#rules.holds(head)) this.#response = { head, chunks: [], size: 0 }
    else this.#pass(head)
  }

  write(chunk: Buffer): boolean {
    const held = this.#response
    if (held === undefined) return this.#inner.write(chunk)
    held.chunks.push(chunk)
    held.size += chunk.length
    return held.size <= LARGEST_HELD || this.#forward(held)
  }

  end(lastChunk?: Buffer): void {
    if (this.#response === undefined) this.#inner.end(lastChunk)
    else {
      if (lastChunk !== undefined) this.#response.chunks.push(lastChunk)
      this.#complete = true
    }
  }

  cut(): void {
    this.#response = undefined
    this.#inner.cut()
  }

  body(stallTimeout: number): AsyncIterable<Buffer> {
    return this.#rules.body(stallTimeout)
  }

  get answered(): boolean {
    return this.#inner.answered
  }

  get ended(): boolean {
    return this.#inner.ended
  }

  inform(status: number, fields: Fields): void {
    this.#inner.inform(status, this.#rules.conceal(fields))
  }

  onDrain(listener: () => void): void {
    this.#inner.onDrain(listener)
  }

  onEnd(listener: () => void): void {
    this.#inner.onEnd(listener)
  }

  #pass(head: ResponseHead): void {
    this.#inner.begin({ ...head, fields: this.#rules.conceal(head.fields), reusable: false })
  }
}
