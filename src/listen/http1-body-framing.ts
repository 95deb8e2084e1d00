import { Chunks } from './http1-chunks.ts'
import type { BodyFraming } from './http1-head.ts'
import { Trailers } from './http1-trailers.ts'

/** Finds the data of one body, and its end, among the bytes of a connection (RFC 9112 §6). */
export interface BodyReader {
  /** The body has been read to its end. */
  readonly done: boolean
  /** Reads on; gives the position behind what belongs to the body, or -1 where the bytes are none. */
  read(bytes: Buffer): number
}

export function readBody(framing: BodyFraming, onData: (data: Buffer) => void): BodyReader {
  return framing === 'chunked' ? new ChunkedBody(onData) : new CountedBody(framing, onData)
}

class CountedBody implements BodyReader {
  #left: number
  readonly #onData: (data: Buffer) => void

  constructor(length: number, onData: (data: Buffer) => void) {
    this.#left = length
    this.#onData = onData
  }

  get done(): boolean {
    return this.#left === 0
  }

  read(bytes: Buffer): number {
    const taken = Math.min(this.#left, bytes.length)
    this.#left -= taken
    if (taken > 0) this.#onData(taken === bytes.length ? bytes : bytes.subarray(0, taken))
    return taken
  }
}

/** Trailers are read and dropped (RFC 9110 §6.5.1): nobody asked for them, and some would mean something elsewhere. */
class ChunkedBody implements BodyReader {
  readonly #chunks = new Chunks()
  readonly #trailers = new Trailers()
  readonly #onData: (data: Buffer) => void

  constructor(onData: (data: Buffer) => void) {
    this.#onData = onData
  }

  get done(): boolean {
    return this.#trailers.done
  }

  read(bytes: Buffer): number {
    const at = this.#chunks.done ? 0 : this.#chunks.read(bytes, this.#onData)
    return at < 0 || !this.#chunks.done ? at : this.#trailers.read(bytes, at)
  }
}
