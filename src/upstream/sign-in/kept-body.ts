/** A request body that can be sent once more, if it was short and came to its end. */
export interface KeptBody {
  /** What was read so far, then the rest. One at a time. */
  open(): AsyncIterable<Buffer>
  /** All of it was read, and is still there. */
  readonly repeatable: boolean
  /** Nobody will read on. */
  close(): void
}

/** Bodies up to this size (bytes) are kept: the calls of an API, not uploads. */
const LARGEST_KEPT = 64 * 1024

export function keepBody(source: AsyncIterable<Buffer>): KeptBody {
  const iterator = source[Symbol.asyncIterator]()
  let kept: Buffer[] | undefined = []
  let size = 0
  let whole = false

  return {
    async *open() {
      yield* kept ?? []
      for (;;) {
        const next = await iterator.next()
        if (next.done === true) {
          whole = true
          return
        }
        size += next.value.length
        if (size > LARGEST_KEPT) kept = undefined
        // A copy: what is sent gives its memory back.
        kept?.push(Buffer.from(next.value))
        yield next.value
      }
    },
    get repeatable() {
      return whole && kept !== undefined
    },
    close() {
      iterator.return?.().catch(() => {})
    },
  }
}
