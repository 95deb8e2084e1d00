import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { requestText } from '../fuzz/grammar.ts'
import { mutated } from '../fuzz/mutation.ts'
import { compareWithNode } from '../http1/nodes-reading.ts'
import { anyFields, framed, message, requestLines } from './http1-messages.ts'

/** Each kind must be accepted often enough: otherwise the test compares nothing. */
describe('Node reads the same request, with the same last byte, from all bytes that the sidecar accepts', () => {
  it.each([
    ['for damaged requests of clients', mutated(requestText), 2500, 0.2],
    ['for requests with bodies', message.map(({ text }) => text), 1000, 0.99],
    ['for damaged requests with bodies', mutated(message.map(({ text }) => text)), 1500, 0.3],
    ['for fields that frame a message', framed, 2500, 0.1],
    ['for damaged fields that frame a message', mutated(framed), 1500, 0.05],
    ['for request lines', requestLines, 2500, 0.1],
    ['for names and values of any bytes', anyFields, 2500, 0.1],
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

  it('H12 except for trailers, which the sidecar drops', async () => {
    const head = 'GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n'
    const text = `${head}A: b\r\nTransfer-Encoding: Chunked\r\n\r\n`
    expect(await compareWithNode(Buffer.from(text))).toEqual({ accepted: true, disagreements: [] })
  })
})
