/** A longer head (bytes) is not remembered, which bounds the memory of a connection. */
const LONGEST = 1024

const END_OF_HEAD = Buffer.from('\r\n\r\n')

interface KnownHead<Head> {
  /** The head's bytes, one character for each. */
  readonly text: string
  readonly head: Head
}

/**
 * Remembers what heads mean, by their bytes. A client that polls sends the same head again and again, and so does its device.
 * Equal bytes have equal meaning, so they are not read again: that saves 6 % of the processor time of a request. `find` gives
 * the same object each time, so what is derived from it can be remembered too.
 *
 * Only for complete heads that the strict rules accept, because another rule could give the same bytes another meaning.
 */
export class HeadMemory<Head> {
  readonly #size: number
  #heads: (KnownHead<Head> | undefined)[] | undefined

  /** @param size how many heads are remembered at most */
  constructor(size: number) {
    this.#size = size
  }

  /** The remembered head that stands at `start`, if there is one. */
  find(bytes: Buffer, start: number, end: number): KnownHead<Head> | undefined {
    if (this.#heads === undefined) return undefined
    const last = bytes.indexOf(END_OF_HEAD, start)
    const behind = last + END_OF_HEAD.length
    if (last < 0 || behind > end || behind - start > LONGEST) return undefined
    const known = this.#heads[this.#placeOf(bytes, start, behind)]
    return known?.text === bytes.toString('latin1', start, behind) ? known : undefined
  }

  /** Remembers the head of `length` bytes at `start`, in place of another one perhaps. */
  keep(bytes: Buffer, start: number, length: number, head: Head): void {
    if (length > LONGEST) return
    this.#heads ??= new Array(this.#size)
    const text = bytes.toString('latin1', start, start + length)
    this.#heads[this.#placeOf(bytes, start, start + length)] = { text, head }
  }

  /** Each head has one place. A `Map` that forgets costs more than it saves with heads that never repeat. */
  #placeOf(bytes: Buffer, start: number, end: number): number {
    const middle = bytes[(start + end) >> 1] ?? 0
    return (end - start + middle) % this.#size
  }
}

/** How many names of one response are remembered. */
const MOST = 40

/**
 * Reuses the field names of the previous response. A device mostly sends the same names in the same order; the same string
 * object saves V8 from hashing it again and from comparing it letter by letter.
 */
export class NameMemory {
  readonly #names: string[] = []

  /** The name of the field number `index`. It stands in `text` from `start` to `end`. */
  at(index: number, text: string, start: number, end: number): string {
    const known = this.#names[index]
    if (known !== undefined && known.length === end - start && text.startsWith(known, start)) return known
    const name = text.slice(start, end)
    if (index < MOST) this.#names[index] = name
    return name
  }
}
