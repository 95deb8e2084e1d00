import { once } from 'node:events'
import type { Response } from './message.ts'
import { rawConnection } from './raw.ts'
import { answersIn } from './raw-answers.ts'

/** The body that is sent, and its framing: a length, or chunks. */
export interface Upload {
  /** Bytes. */
  readonly size: number
  readonly chunked?: boolean
}

const PIECE = 1 << 20

/**
 * Sends a request as a blocking client does (`http.client` of Python, for one): nothing is read before the last byte of the
 * body is sent. A connection that breaks before that loses the answer, as it does for such a client: then this fails.
 * @param head the request line and fields, without those that say how long the body is
 */
export async function sendThenRead(
  url: string,
  head: string,
  { size, chunked = false }: Upload,
): Promise<Response> {
  const raw = await rawConnection(url)
  const { socket } = raw
  socket.allowHalfOpen = true
  socket.pause()
  const framing = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${size}`
  raw.write(`${head}\r\n${framing}\r\n\r\n`)
  for (let left = size; left > 0 && !socket.destroyed; left -= PIECE) {
    const piece = Buffer.alloc(Math.min(left, PIECE), 'x')
    if (chunked) raw.write(`${piece.length.toString(16)}\r\n`)
    raw.write(piece)
    if (chunked) raw.write('\r\n')
    if (socket.writableNeedDrain) await Promise.race([once(socket, 'drain').catch(() => {}), raw.closed])
  }
  if (!socket.destroyed) {
    if (chunked) raw.write('0\r\n\r\n')
    await new Promise((resolve) => {
      socket.write('', resolve)
    })
  }
  socket.resume()
  socket.once('end', () => socket.end())
  const [answer] = answersIn(await raw.closed)
  if (answer === undefined) throw new Error(`no answer: ${raw.error?.message}`)
  return answer
}
