import type { ServerResponse } from 'node:http'
import type { ResponseHead } from '../http/exchange.ts'

/** A first piece of the body up to this size (bytes) leaves as text with the head. */
const LARGEST_HELD = 8 * 1024

const SOON = Promise.resolve()

/**
 * A response in pieces. Its head waits, until whoever writes it has had his turn, for what came in one piece with it:
 * a short answer leaves in one write, which costs much less than two, and the head of a stream at once all the same.
 */
export class StreamedResponse {
  readonly #res: ServerResponse
  #holds = false
  #held: Buffer | undefined

  constructor(res: ServerResponse) {
    this.#res = res
  }

  begin({ status, reason }: ResponseHead, fields: string[]): void {
    this.#res.writeHead(status, reason, fields)
    this.#holds = true
    // `queueMicrotask` would make an asynchronous resource of every call.
    SOON.then(() => this.#letGo())
  }

  write(chunk: Buffer): boolean {
    if (this.#holds && this.#held === undefined && chunk.length <= LARGEST_HELD) {
      this.#held = chunk
      return true
    }
    this.#letGo()
    return this.#res.write(chunk)
  }

  end(lastChunk?: Buffer): void {
    const whole = lastChunk === undefined ? this.#held : undefined
    if (whole !== undefined || this.#held === undefined) this.#holds = false
    this.#letGo()
    if (whole === undefined) this.#res.end(lastChunk)
    else this.#res.end(whole.toString('latin1'), 'latin1')
  }

  #letGo(): void {
    if (!this.#holds) return
    this.#holds = false
    if (this.#held === undefined) this.#res.flushHeaders()
    else this.#res.write(this.#held)
    this.#held = undefined
  }
}
