import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { requestText } from '../fuzz/grammar.ts'
import { mutated } from '../fuzz/mutation.ts'
import { compareWithNode } from '../support/two-readings.ts'
import { anyFields, framed, message, requestLines } from './http1-messages.ts'

/** Every one of these must be accepted now and then, or nothing is shown. */
describe('whatever the sidecar takes for a request, Node takes for the same request, and it ends at the same byte', () => {
  it.each([
    ['requests as clients send them, and damaged', mutated(requestText), 2500, 0.2],
    ['requests with bodies', message.map(({ text }) => text), 1000, 0.99],
    ['the same, damaged', mutated(message.map(({ text }) => text)), 1500, 0.3],
    ['fields that frame a message', framed, 2500, 0.1],
    ['these, damaged', mutated(framed), 1500, 0.05],
    ['request lines', requestLines, 2500, 0.1],
    ['names and values of any byte', anyFields, 2500, 0.1],
  ])('H96 C20 %s', async (_name, texts, numRuns, least) => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        const comparison = await compareWithNode(Buffer.from(text, 'latin1'))
        if (comparison.accepted) accepted += 1
        expect(comparison.disagreements).toEqual([])
      }),
      { numRuns },
    )
    expect(accepted / numRuns).toBeGreaterThan(least)
  })

  it('H12 but for trailers, which go nowhere', async () => {
    const head = 'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n'
    const text = `${head}A: b\r\nTransfer-Encoding: Chunked\r\n\r\n`
    expect(await compareWithNode(Buffer.from(text))).toEqual({ accepted: true, disagreements: [] })
  })
})
