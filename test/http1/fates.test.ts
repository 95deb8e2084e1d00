import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ClassifyRules, classify } from '../../src/gate/classify.ts'
import { inside, runCases } from '../support/cases.ts'
import { headOf } from '../support/http1-reader.ts'
import { bytesOf } from '../support/shown-bytes.ts'
import { readInPieces } from './intake.ts'

const RULES: ClassifyRules = {
  headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
  revocationPath: undefined,
  browser: false,
  cors: undefined,
}

/** A good request behind the bytes of a case. */
const NEXT = Buffer.from(headOf('GET /next HTTP/1.1', 'Host: device'))

/**
 * What becomes of the first request in these bytes: `refused`, by the reader, by the gate or within its body, and the connection closes
 * behind it; or `served`, and the next one begins behind its last byte.
 */
async function fateOf(pieces: readonly Buffer[]): Promise<'refused' | 'served'> {
  const { maxHeaderSize } = RULES.headerCaps
  const { messages, fault } = await readInPieces(pieces, { most: 2, maxHeaderSize })
  const [first, next] = messages
  if (first !== undefined && classify(first.head, RULES).ambiguous) return 'refused'
  if (first === undefined || !first.whole) {
    expect([fault, next]).toEqual([expect.any(String), undefined])
    return 'refused'
  }
  expect([classify(first.head, RULES).fault, first.head.leavesHttp]).toEqual([undefined, false])
  expect(next?.head.target).toBe('/next')
  return 'served'
}

runCases(join(import.meta.dirname, 'fates'), {
  given: ['around', 'bytes'],
  results: ['fate'],
  async play({ around, bytes: shown = '' }) {
    const bytes = Buffer.concat([bytesOf(inside(around, shown)), NEXT])
    const fate = await fateOf([bytes])
    expect(await fateOf(Array.from(bytes, (byte) => Buffer.of(byte))), 'byte by byte').toBe(fate)
    return { fate }
  },
})

const get = (...fields: readonly string[]): string => headOf('GET /x HTTP/1.1', 'Host: device', ...fields)
const post = (...fields: readonly string[]): string => headOf('POST /x HTTP/1.1', 'Host: device', ...fields)
const body = (text: string): string => post('Transfer-Encoding: chunked') + text
const length = (digits: string): string => `${post(`Content-Length: ${digits}`)}hello`

/** What is too long for a file of cases. */
describe('Long bytes', () => {
  it.each([
    ['H6 a length of 410 digits', length(`${'0'.repeat(400)}4294967301`)],
    ['H6 a length of 1000 digits', length('5'.repeat(1000))],
    ['H7 an extension of 300 bytes', body(`5;${'a'.repeat(300)}\r\nhello\r\n0\r\n\r\n`)],
    ['H9 a method of 100 KiB', get().replace('GET', 'A'.repeat(100 * 1024))],
    ['H9 a target of 100 KiB', get().replace('/x', '/x'.repeat(50 * 1024))],
    // The server reads bytes that count towards no limit (CVE-2024-22019 in Node).
    ['H84 an extension of 64 KiB', body(`5;${'a'.repeat(65_536)}\r\nhello\r\n0\r\n\r\n`)],
    ['H84 extensions of 50 KiB', body(`1;${'a'.repeat(250)}\r\nx\r\n`.repeat(200))],
    ['H86 many trailers', body(`0\r\n${'A: b\r\n'.repeat(2_731)}\r\n`)],
    ['H86 a trailer of 64 KiB', body(`0\r\nA: ${'b'.repeat(65_536)}\r\n\r\n`)],
  ])('%s: the request is refused', async (_what, text) => {
    expect(await fateOf([Buffer.from(text), NEXT])).toBe('refused')
  })

  it.each([255, 256, 257, 270, 511, 512, 1024, 4096, 8192])(
    'H92 a name of %i bytes that begins with Content-Length frames nothing',
    async (size) => {
      const text = `${post(`${'Content-Length'.padEnd(size, '0')}: 0`, 'Content-Length: 5')}hello`
      expect(await fateOf([Buffer.from(text), NEXT])).toBe('served')
    },
  )

  it('H84 chunks with a signature in each extension are read', async () => {
    const chunk = `400;chunk-signature=${'a'.repeat(64)}\r\n${'x'.repeat(1024)}\r\n`
    expect(await fateOf([Buffer.from(`${body(chunk.repeat(300))}0\r\n\r\n`), NEXT])).toBe('served')
  })
})
