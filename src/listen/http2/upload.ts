import { constants, type ServerHttp2Stream } from 'node:http2'
import type { Clock } from '../../system/clock.ts'
import { MovingDeadline } from '../../system/moving-deadline.ts'
import { FRAME_WORK, READ_WORK, type TurnBudget } from '../../system/turn-budget.ts'
import { RequestBody } from '../request-body.ts'

/**
 * The body of an HTTP/2 request. The stream is read only while a read of the body waits, so Node's buffer and the window of the stream
 * bound the unread bytes; a broken body discards the bytes that arrive. Node's own iterator is not used, because it destroys a stream that
 * is not read to its end, and then no response could be sent on it.
 *
 * @param turns the turn budget of the client, over all its streams. A stream that waits for a turn is not read, so its window stays closed.
 * @param onRead called with the number of bytes of each read, also for bytes that the body discards
 */
export function bodyOf(
  clock: Pick<Clock, 'monotonic' | 'after'>,
  stream: ServerHttp2Stream,
  turns: TurnBudget,
  onRead: (bytes: number) => void,
): RequestBody {
  const body = new RequestBody(clock, pull, 0, () => deferred && stream.readableLength > 0)
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
      const pieces = readPieces(stream)
      const [first] = pieces
      if (first === undefined) return
      turns.spend(FRAME_WORK * pieces.length)
      const read = pieces.length === 1 ? first : Buffer.concat(pieces)
      onRead(read.length)
      body.push(read)
    }
  }
  const end = (): void => (isClean(stream) ? body.finish() : body.break())
  // An empty body may have ended already, because its `end` event needs no read.
  if (stream.readableEnded) end()
  else stream.on('readable', pull).on('end', end)
  return body
}

/** Pieces are joined until they have this many bytes together. */
const JOINED = 4 * 1024

/** Reads the next pieces of a stream: a client may send frames of one byte, and Node returns each by itself. */
function readPieces(stream: ServerHttp2Stream): Buffer[] {
  const pieces: Buffer[] = []
  for (let size = 0; size < JOINED; ) {
    const piece: unknown = stream.read()
    if (!Buffer.isBuffer(piece)) break
    pieces.push(piece)
    size += piece.length
  }
  return pieces
}

/** How long (ms) an upload is discarded at most. */
const DISCARD_TIME = 30_000
/** How long (ms) it may pause meanwhile. */
const DISCARD_SILENCE = 1_000

/** Discards an upload until it ends, pauses or takes too long, and calls `onOver`; never if the stream closes before. */
export function discardUpload(
  clock: Pick<Clock, 'monotonic' | 'after'>,
  stream: ServerHttp2Stream,
  body: RequestBody,
  onOver: () => void,
): void {
  const over = (): void => {
    stop()
    onOver()
  }
  const late = clock.after(DISCARD_TIME, over)
  const silent = new MovingDeadline(clock, over)
  silent.move(DISCARD_SILENCE)
  const onData = (): void => silent.move(DISCARD_SILENCE)
  const stop = (): void => {
    late.cancel()
    silent.cancel()
    stream.off('data', onData)
  }
  stream.on('data', onData)
  stream.once('end', over)
  stream.once('close', stop)
  body.break()
}

/** Whether neither side has reset the stream: Node also ends a stream that was reset. */
export function isClean(stream: ServerHttp2Stream): boolean {
  return !stream.aborted && stream.rstCode === constants.NGHTTP2_NO_ERROR
}
