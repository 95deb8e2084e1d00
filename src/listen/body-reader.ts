import type { Readable } from 'node:stream'
import { BrokenBodyError, StalledBodyError } from '../http/exchange.ts'

export interface BodyReader {
  /** Bytes handed out so far. */
  readonly bytes: number
  /** Reads on demand; never destroys the stream, so that an answer can still be sent on its connection. */
  read(stallTimeout: number): AsyncGenerator<Buffer, void, void>
  /** Makes a reader that waits, or comes later, fail: no more of the body will come. */
  break(): void
}

/**
 * The body of an HTTP/2 request, pulled. Node's own iterator would do but for one thing: it destroys what it did not
 * finish. `isWhole` says whether a stream that ended did so because the client was done: Node ends a stream that was reset, too.
 */
export function createBodyReader(stream: Readable, isWhole: () => boolean): BodyReader {
  let bytes = 0
  let broken = false
  let wake: (() => void) | undefined

  const stir = (): void => wake?.()

  /** Resolves when something may have changed; false when nothing did within `patience` ms. */
  function wait(patience: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle(false), patience)
      const settle = (stirred: boolean): void => {
        clearTimeout(timer)
        wake = undefined
        resolve(stirred)
      }
      wake = () => settle(true)
    })
  }

  return {
    get bytes() {
      return bytes
    },
    break() {
      broken = true
      stir()
    },
    async *read(stallTimeout) {
      for (const event of ['readable', 'end', 'error', 'close'] as const) stream.on(event, stir)
      try {
        for (;;) {
          const chunk: unknown = stream.read()
          if (Buffer.isBuffer(chunk)) {
            bytes += chunk.length
            yield chunk
          } else if (stream.readableEnded && isWhole()) return
          else if (broken || stream.readableEnded || stream.destroyed) {
            throw new BrokenBodyError()
          } else if (!(await wait(stallTimeout))) throw new StalledBodyError()
        }
      } finally {
        for (const event of ['readable', 'end', 'error', 'close'] as const) stream.off(event, stir)
      }
    },
  }
}
