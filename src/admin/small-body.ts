import type { IncomingMessage } from 'node:http'
import { type Answer, errorAnswer } from './answer.ts'

/** The longest body of a request to the page (bytes). */
const LARGEST_BODY = 4096

/**
 * Reads a request body of at most 4 KiB as UTF-8. Undefined: it is longer; the rest is discarded, and the response is `tooLarge`.
 * The listener's request timeout ends a slow one. Rejects if the client leaves before the end.
 */
export function readSmallBody(req: IncomingMessage): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const take = (chunk: Buffer): void => {
      size += chunk.length
      if (size <= LARGEST_BODY) chunks.push(chunk)
      else {
        req.off('data', take)
        req.resume()
        resolve(undefined)
      }
    }
    req.on('data', take)
    req.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    req.once('error', () => reject(new ClientGone()))
    req.once('close', () => reject(new ClientGone()))
  })
}

/** 413. The connection closes, so the client does not send the rest. */
export function tooLarge(): Answer {
  return errorAnswer(413, 'content_too_large', 'The body is longer than 4 KiB.', { Connection: 'close' })
}

/** The client left before its request was complete: no bug, and nobody to answer. */
export class ClientGone extends Error {}
