import { LARGE_PIECE } from '../http/spent-bytes.ts'

/** Where the pieces of a body stand in the bytes that are being read. */
export class BodyPieces {
  readonly #ends: number[] = []
  #count = 0
  size = 0

  clear(): void {
    this.#count = 0
    this.size = 0
  }

  add(start: number, end: number): void {
    this.#ends[this.#count] = start
    this.#ends[this.#count + 1] = end
    this.#count += 2
    this.size += end - start
  }

  /** It is one piece, and a large one: more of them will follow. */
  get large(): boolean {
    return this.#count === 2 && this.size >= LARGE_PIECE
  }

  /** All of them together; copied, unless the bytes are the reader's `own` and nothing else
   * stands in them: a large one then has its memory to itself. */
  take(bytes: Buffer, own: boolean): Buffer | undefined {
    if (this.size === 0) return undefined
    if (own && this.large && this.size === bytes.length) return bytes
    const body = this.size < LARGE_PIECE ? Buffer.allocUnsafe(this.size) : Buffer.allocUnsafeSlow(this.size)
    let size = 0
    for (let i = 0; i < this.#count; i += 2) {
      size += bytes.copy(body, size, this.#ends[i], this.#ends[i + 1])
    }
    return body
  }
}
