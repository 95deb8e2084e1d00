import { once } from 'node:events'
import { responsesIn } from '../support/http1-reader.ts'
import type { Response } from '../support/message.ts'
import { rawConnection } from '../support/raw.ts'

/** The request body: its size, and whether it is chunked or has a `Content-Length`. */
export interface Upload {
  /** Bytes. */
  readonly size: number
  readonly chunked?: boolean
}

const PIECE = 1 << 20

/**
 * Sends a request as a blocking client does (for example Python's `http.client`): it reads nothing before it has sent the
 * last byte of the body. If the connection breaks before that, the response is lost, and the promise rejects.
 * @param head the request line and fields, without `Content-Length` and `Transfer-Encoding`
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
  const [response] = responsesIn(await raw.closed)
  if (response === undefined) throw new Error(`no response: ${raw.error?.message}`)
  return response
}
