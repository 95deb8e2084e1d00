import { expect } from 'vitest'
import { createHttp1Reader } from './http1-reader.ts'
import { type Head, Response } from './message.ts'

/** A request head, or any lines with an empty one behind them. */
export const typed = (...lines: string[]): string => `${lines.join('\r\n')}\r\n\r\n`

/** Everything received on a connection that has closed, as answers, interim ones left out. Fails unless all are whole. */
export function answersIn(received: string): Response[] {
  const answers: Response[] = []
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
      if (head !== undefined) answers.push(new Response(head, Buffer.concat(chunks), trailers, []))
    },
  }))
  reader.feed(Buffer.from(received, 'latin1'))
  expect(reader.close(), 'whole answers and nothing else').toBe(true)
  return answers
}
