import { expect } from 'vitest'
import { createHttp1Reader } from './http1-reader.ts'
import { type Head, Response } from './message.ts'

/** These lines as the head of a message, with the empty line that ends it. */
export const headOf = (...lines: string[]): string => `${lines.join('\r\n')}\r\n\r\n`

/** The final responses in everything that a closed connection received. Fails unless each of them is whole. */
export function responsesIn(received: string): Response[] {
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
  expect(reader.close(), 'whole responses and nothing else').toBe(true)
  return responses
}
