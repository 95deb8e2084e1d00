import { constants, type ServerHttp2Stream } from 'node:http2'
import { BrokenBodyError, StalledBodyError } from '../../http/refusal.ts'

export interface BodyReader {
  readonly bytes: number
  /** Reads on demand. Never destroys the stream, so a response can still be sent on it. `stallTimeout` in ms. */
  read(stallTimeout: number): AsyncGenerator<Buffer, void, void>
  /** Waits for the first bytes or the end, and fails as reading does. The bytes stay unread. */
  arrival(stallTimeout: number): Promise<void>
  /** No more of the body will come: a pending read and all later ones fail. */
  break(): void
}

/**
 * Reads the body of an HTTP/2 request on demand. Node's own iterator is not used because it destroys a stream that is not read to
 * its end.
 */
export function createBodyReader(stream: ServerHttp2Stream): BodyReader {
  let bytes = 0
  let broken = false
  let wake: (() => void) | undefined

  const onChange = (): void => wake?.()

  /** Resolves with true when the state of the stream may have changed, and with false after `timeout` ms. */
  function wait(timeout: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => settle(false), timeout)
      const settle = (changed: boolean): void => {
        clearTimeout(timer)
        wake = undefined
        resolve(changed)
      }
      wake = () => settle(true)
    })
  }

  function listen(change: 'on' | 'off'): void {
    for (const event of ['readable', 'end', 'error', 'close'] as const) stream[change](event, onChange)
  }

  /** Waits until there may be more to read. Returns false at the end of the body. */
  async function more(stallTimeout: number): Promise<boolean> {
    if (stream.readableEnded && isClean(stream)) return false
    if (broken || stream.readableEnded || stream.destroyed) throw new BrokenBodyError()
    if (!(await wait(stallTimeout))) throw new StalledBodyError()
    return true
  }

  return {
    get bytes() {
      return bytes
    },
    break() {
      broken = true
      onChange()
    },
    async *read(stallTimeout) {
      listen('on')
      try {
        for (;;) {
          const chunk: unknown = stream.read()
          if (Buffer.isBuffer(chunk)) {
            bytes += chunk.length
            yield chunk
          } else if (!(await more(stallTimeout))) return
        }
      } finally {
        listen('off')
      }
    },
    async arrival(stallTimeout) {
      listen('on')
      try {
        do stream.read(0)
        while (stream.readableLength === 0 && (await more(stallTimeout)))
      } finally {
        listen('off')
      }
    },
  }
}

/** How long (ms) an upload is discarded, and how long it may pause meanwhile. */
const DISCARD_TIME = 30_000
const DISCARD_SILENCE = 1_000

/** Discards an upload until it ends, pauses or takes too long, and calls `onOver`; never if the stream closes before. */
export function discardUpload(
  stream: ServerHttp2Stream,
  reader: BodyReader | undefined,
  onOver: () => void,
): void {
  reader?.break()
  const over = (): void => {
    stop()
    onOver()
  }
  const late = setTimeout(over, DISCARD_TIME)
  const silent = setTimeout(over, DISCARD_SILENCE)
  const read = (): void => {
    while (stream.read() !== null) silent.refresh()
  }
  const stop = (): void => {
    clearTimeout(late)
    clearTimeout(silent)
    stream.off('readable', read)
  }
  stream.on('readable', read)
  stream.once('end', over)
  stream.once('close', stop)
  read()
}

/** Whether neither side has reset the stream: Node also ends a stream that was reset. */
export function isClean(stream: ServerHttp2Stream): boolean {
  return !stream.aborted && stream.rstCode === constants.NGHTTP2_NO_ERROR
}
