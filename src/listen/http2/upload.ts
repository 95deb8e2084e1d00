import { constants, type ServerHttp2Stream } from 'node:http2'
import { RequestBody } from '../../http/request-body.ts'

/** How many unread bytes of a body are buffered beside those in Node's buffer. Beyond that the stream is not read. */
const MOST_UNREAD = 16 * 1024

/**
 * The body of an HTTP/2 request, which is read from now on. Node's own iterator is not used because it destroys a stream that is not
 * read to its end, and then no response could be sent on it.
 */
export function bodyOf(stream: ServerHttp2Stream): RequestBody {
  const body = new RequestBody(() => stream.resume(), MOST_UNREAD)
  stream.on('data', (chunk: Buffer) => {
    body.push(chunk)
    if (body.full) stream.pause()
  })
  stream.on('end', () => {
    if (isClean(stream)) body.finish()
    else body.break()
  })
  return body
}

/** How long (ms) an upload is discarded, and how long it may pause meanwhile. */
const DISCARD_TIME = 30_000
const DISCARD_SILENCE = 1_000

/** Discards an upload until it ends, pauses or takes too long, and calls `onOver`; never if the stream closes before. */
export function discardUpload(
  stream: ServerHttp2Stream,
  body: RequestBody | undefined,
  onOver: () => void,
): void {
  body?.break()
  const over = (): void => {
    stop()
    onOver()
  }
  const late = setTimeout(over, DISCARD_TIME)
  const silent = setTimeout(over, DISCARD_SILENCE)
  const stop = (): void => {
    clearTimeout(late)
    clearTimeout(silent)
    stream.pause()
  }
  stream.on('data', () => silent.refresh())
  stream.once('end', over)
  stream.once('close', stop)
  stream.resume()
}

/** Whether neither side has reset the stream: Node also ends a stream that was reset. */
export function isClean(stream: ServerHttp2Stream): boolean {
  return !stream.aborted && stream.rstCode === constants.NGHTTP2_NO_ERROR
}
