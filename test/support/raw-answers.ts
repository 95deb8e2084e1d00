import { expect } from 'vitest'
import { createHttp1Reader } from './http1-reader.ts'
import { type Head, Response } from './message.ts'

/** A request head: the lines, ended by CRLF, and an empty line. */
export const typed = (...lines: string[]): string => `${lines.join('\r\n')}\r\n\r\n`

/** Parses everything received on a closed connection as responses, without the 1xx. Fails unless all are complete. */
export function answersIn(received: string): Response[] {
  const responses: Response[] = []
  let head: Head | undefined
  let chunks: Buffer[] = []
  const reader = createHttp1Reader(() => ({
    method: 'GET',
    inform: () => {},
    begin: (begun) => {
      head = begun
      chunks = []
    },
    data: (chunk) => chunks.push(chunk),
    finish: (trailers) => {
      if (head !== undefined) responses.push(new Response(head, Buffer.concat(chunks), trailers, []))
    },
  }))
  reader.feed(Buffer.from(received, 'latin1'))
  expect(reader.close(), 'complete responses and nothing else').toBe(true)
  return responses
}
