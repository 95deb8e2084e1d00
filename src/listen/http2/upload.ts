import { constants, type ServerHttp2Stream } from 'node:http2'
import { RequestBody } from '../../http/request-body.ts'
import { READ_WORK, type TurnBudget } from '../../system/turn-budget.ts'

/**
 * The body of an HTTP/2 request. The stream is read only while a read of the body waits, so Node's buffer and the window of the
 * stream bound what is unread; a broken body discards what arrives. Node's own iterator is not used because it destroys a stream that
 * is not read to its end, and then no response could be sent on it.
 *
 * @param turns what is read in a turn of the event loop for the client, over all its streams. What waits takes none of its window anew.
 */
export function bodyOf(stream: ServerHttp2Stream, turns: TurnBudget): RequestBody {
  const body = new RequestBody(pull, 0, () => deferred && stream.readableLength > 0)
  let deferred = false
  function readOn(): void {
    deferred = false
    turns.spend(READ_WORK + stream.readableLength)
    read()
  }
  function pull(): void {
    if (deferred || body.full) return
    if (turns.take(READ_WORK + stream.readableLength)) read()
    else {
      deferred = true
      turns.wait(readOn)
    }
  }
  function read(): void {
    while (!body.full) {
      const chunk: unknown = stream.read()
      if (!Buffer.isBuffer(chunk)) return
      body.push(chunk)
    }
  }
  const end = (): void => (isClean(stream) ? body.finish() : body.break())
  // An empty body may have ended before anyone listens: its `end` needs no read.
  if (stream.readableEnded) end()
  else stream.on('readable', pull).on('end', end)
  return body
}

/** How long (ms) an upload is discarded, and how long it may pause meanwhile. */
const DISCARD_TIME = 30_000
const DISCARD_SILENCE = 1_000

/** Discards an upload until it ends, pauses or takes too long, and calls `onOver`; never if the stream closes before. */
export function discardUpload(stream: ServerHttp2Stream, body: RequestBody, onOver: () => void): void {
  const over = (): void => {
    stop()
    onOver()
  }
  const late = setTimeout(over, DISCARD_TIME)
  const silent = setTimeout(over, DISCARD_SILENCE)
  const stop = (): void => {
    clearTimeout(late)
    clearTimeout(silent)
  }
  stream.on('data', () => silent.refresh())
  stream.once('end', over)
  stream.once('close', stop)
  body.break()
}

/** Whether neither side has reset the stream: Node also ends a stream that was reset. */
export function isClean(stream: ServerHttp2Stream): boolean {
  return !stream.aborted && stream.rstCode === constants.NGHTTP2_NO_ERROR
}
