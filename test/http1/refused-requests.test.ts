import { describe, expect, it } from 'vitest'
import { type ClassifyRules, classify } from '../../src/gate/classify.ts'
import { readInPieces } from '../support/http1-intake.ts'
import { headOf } from '../support/raw-responses.ts'
import { rows } from '../support/rows.ts'

const RULES: ClassifyRules = {
  headerCaps: { maxHeaderSize: 16 * 1024, maxHeaderCount: 100 },
  revocationPath: undefined,
  browser: false,
  cors: undefined,
}

/** A good request behind the bytes of a row. */
const NEXT = headOf('GET /next HTTP/1.1', 'Host: device')

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
  expect(classify(first.head, RULES).fault).toBeUndefined()
  expect(next?.head.target).toBe('/next')
  return 'served'
}

/** A long row costs as many readings as it has bytes. */
const SHORT = 1_000

async function expectFate(text: string, fate: 'refused' | 'served'): Promise<void> {
  const bytes = Buffer.from(text + NEXT, 'latin1')
  expect(await fateOf([bytes]), text).toBe(fate)
  if (bytes.length > SHORT) return
  expect(await fateOf(Array.from(bytes, (byte) => Buffer.of(byte))), `${text}, byte by byte`).toBe(fate)
}

const get = (...fields: readonly string[]): string => headOf('GET /x HTTP/1.1', 'Host: device', ...fields)
const post = (...fields: readonly string[]): string => headOf('POST /x HTTP/1.1', 'Host: device', ...fields)
const CHUNKED = 'Transfer-Encoding: chunked'
const CHUNKS = '5\r\nhello\r\n0\r\n\r\n'
const body = (text: string): string => post(CHUNKED) + text
const coding = (value: string): string => post(`Transfer-Encoding: ${value}`) + CHUNKS
const length = (value: string): string => `${post(`Content-Length: ${value}`)}hello`
const size = (text: string): string => body(`${text}\r\nhello\r\n0\r\n\r\n`)
/** A head of these lines, with both kinds of body behind it. */
const lines = (text: string): string => post(...text.split(' | ')) + CHUNKS

/** The function that makes the bytes of each row, and the rows. */
type Table = readonly [id: string, bytes: (row: string) => string, rows: readonly string[]]

const REFUSED: readonly Table[] = [
  // Two framings: a reader that knows only one of them finds another end of the body.
  [
    'H1 both a length and a coding',
    lines,
    rows`
      Content-Length: 5 | Transfer-Encoding: chunked
      Transfer-Encoding: chunked | Content-Length: 5
      Content-Length: 0 | Transfer-Encoding: chunked
      Content-Length: 15 | Transfer-Encoding: chunked
      content-LENGTH: 5 | tRANSFER-eNCODING: CHUNKED
      Transfer-Encoding: chunked | Content-Length: 5 | Transfer-Encoding: chunked
      Content-Length: 5 | Transfer-Encoding: x
      Content-Length: 5 | Transfer-Encoding:
      Connection: Upgrade | Upgrade: h2c | Content-Length: 5 | Transfer-Encoding: chunked`,
  ],
  [
    'H2 the coding',
    coding,
    rows`
      ,chunked
      , chunked
      ␣,chunked
      ,,chunked
      chunked,
      chunked ,
      ,chunked,
      ,`,
  ],
  [
    'H3 the coding',
    coding,
    rows`
      gzip, chunked
      gzip,chunked
      deflate, chunked
      identity, chunked
      x, chunked
      trailers, chunked`,
  ],
  [
    'H3 the codings in two fields',
    lines,
    rows`
      Transfer-Encoding: gzip | Transfer-Encoding: chunked
      Transfer-Encoding: chunked | Transfer-Encoding: gzip`,
  ],
  [
    'H4 the coding',
    coding,
    rows`
      chunked, chunked
      chunked,chunked
      chunked, gzip
      identity
      gzip
      xchunked
      chunkedx
      chunk
      "chunked"
      'chunked'
      chunked;q=1
      chunked; a=b
      chunked chunked
      chunked\tx
      ∅
      ␣
      \xa0chunked
      \x0bchunked
      chunked\x0b
      \x0cchunked
      chun\0ked
      chunked\0
      \x01chunked
      chunked\x7f
      chunked\rx
      chun\r\n ked
      \r\n chunked
      chunked\t
      chunked \t␣
      chunked\t\t`,
  ],
  [
    'H4 the fields',
    lines,
    rows`
      Transfer-Encoding: chunked | Transfer-Encoding: chunked
      Transfer-Encoding: chunked | Transfer-Encoding:
      Transfer-Encoding : chunked
      Transfer-Encoding\t: chunked
      Transfer-Encoding\x01: chunked
      Connection: Upgrade | Upgrade: h2c | Transfer-Encoding: identity`,
  ],
  [
    'H5 HTTP/1.0 with the fields',
    (row) => lines(row).replace('HTTP/1.1', 'HTTP/1.0'),
    rows`
      Transfer-Encoding: chunked
      Transfer-Encoding: chunked | Connection: keep-alive
      Transfer-Encoding: identity
      Transfer-Encoding: chunked | Connection: Upgrade | Upgrade: h2c
      Transfer-Encoding: chunked | Connection: Upgrade | Upgrade: websocket`,
  ],
  [
    'H6 the length',
    length,
    rows`
      5, 5
      5,5
      5, 6
      5,
      ,5
      +5
      -5
      -0
      0x5
      5h
      5.0
      5e0
      0b101
      0o5
      5_0
      5'0
      ∅
      ␣
      5 5
      5\t5
      5;
      "5"
      \xb2
      five
      NaN
      Infinity
      5\x0b
      5\0
      5\r\n 5
      9223372036854775808
      18446744073709551616
      18446744073709551617
      18446744073709551621`,
  ],
  ['H6 a length of many digits', length, [`${'0'.repeat(400)}4294967301`, '5'.repeat(1000)]],
  [
    'H6 the fields',
    (row) => `${post(...row.split(' | '))}hello`,
    rows`
      Content-Length: 5 | Content-Length: 5
      Content-Length: 5 | Content-Length: 6
      content-length: 5 | CONTENT-LENGTH: 5
      Content-Length : 5
      Content-Length\t: 5
      Connection: Upgrade | Upgrade: h2c | Content-Length: 5 | Content-Length: 18
      Connection: Upgrade | Upgrade: h2c | Content-Length: +5`,
  ],
  [
    'H7 a chunk size',
    size,
    rows`
      0x5
      0X5
      ␣5
      \t5
      +5
      -5
      5␣
      5\t
      5h
      5.
      ∅
      ␣
      ;
      ;a=b
      "5"
      5_
      g
      \0
      5\0
      ffffffffffffffff
      10000000000000000
      10000000000000005
      fffffffffffffffff
      20000000000000
      20000000000005
      7fffffffffffffff
      00000000000000005`,
  ],
  [
    'H7 the chunks',
    body,
    rows`
      5\r\nhello\r\n00000000000000000000\r\n\r\n
      5\nhello\r\n0\r\n\r\n
      5\rhello\r\n0\r\n\r\n
      5\r\r\nhello\r\n0\r\n\r\n
      5\r\nhello\n0\r\n\r\n
      5\r\nhello0\r\n\r\n
      5\r\nhelloXX0\r\n\r\n
      4\r\nhello\r\n0\r\n\r\n
      5\r\nhello\r\n0\n\r\n
      5\r\nhello\r\nffffffffffffffff\r\nmore\r\n0\r\n\r\n
      5\r\nhello\r\nx\r\nmore\r\n0\r\n\r\n`,
  ],
  ['H7 an extension of 300 bytes', body, [`5;${'a'.repeat(300)}\r\nhello\r\n0\r\n\r\n`]],
  // The whole head, behind its first line and its Host.
  [
    'H8 the lines of a head',
    (row) => `GET /x HTTP/1.1\r\nHost: device${row}`,
    rows`
      \n\r\n
      \n\n
      \r\n\n
      \n\r\n\r\n
      \r\n\rx\r\n\r\n
      \r\n\r\r\n\r\n
      \r\nA: b\nc: d\r\n\r\n
      \r\nA: b\rc: d\r\n\r\n
      \r\nA: \rxContent-Length: 5\r\n\r\n
      \r\nA\r: b\r\n\r\n
      \r\nA: b\0c\r\n\r\n
      \r\nA\0: b\r\n\r\n
      \r\nA: b\x01c\r\n\r\n
      \r\nA: \x1b[31m\r\n\r\n
      \r\nA: b\x7fc\r\n\r\n
      \r\nA: b\r\n c\r\n\r\n
      \r\nA: b\r\n\tc\r\n\r\n
      \r\nContent-Length: 5\r\n 5\r\n\r\n
      \r\nA: b\r\n \r\n\r\n
      \r\n A: b\r\n\r\n
      \r\nnothing\r\n\r\n
      \r\n: b\r\n\r\n
      \r\n:\r\n\r\n
      \r\n : b\r\n\r\n
      \r\nA : b\r\n\r\n
      \r\nA\t: b\r\n\r\n
      \r\nA\x0b: b\r\n\r\n
      \r\nA B: c\r\n\r\n
      \r\nA(B): c\r\n\r\n
      \r\nA/B: c\r\n\r\n
      \r\nA,B: c\r\n\r\n
      \r\nA@B: c\r\n\r\n
      \r\nA\xe4: b\r\n\r\n
      \r\nContent\xadLength: 5\r\n\r\n
      \r\n"A": b\r\n\r\n`,
  ],
  [
    'H8 the whole head',
    (row) => row,
    rows`
      GET /x HTTP/1.1\nHost: device\r\n\r\n
      GET /x HTTP/1.1\rHost: device\r\n\r\n
      GET /x HTTP/1.1\nHost: device\n\n
      GET /x HTTP/1.1\rHost: device\r\r
      GET /x HTTP/1.1\r\n A: b\r\nHost: device\r\n\r\n
      GET /x HTTP/1.1\r\n Host: device\r\n\r\n`,
  ],
  // Malformed request lines (RFC 9112 §3). Most are accepted by some parser.
  [
    'H9 H90 the request line',
    (row) => get().replace('GET /x HTTP/1.1', row),
    rows`
      GET  /x HTTP/1.1
      GET /x  HTTP/1.1
      GET   /x   HTTP/1.1
      ␣GET /x HTTP/1.1
      \tGET /x HTTP/1.1
      GET\t/x HTTP/1.1
      GET /x\tHTTP/1.1
      GET\x0b/x HTTP/1.1
      GET\x0c/x HTTP/1.1
      GET\r/x HTTP/1.1
      GET\xa0/x HTTP/1.1
      GET /x HTTP/1.1␣
      GET /x HTTP/1.1\t
      GET /x HTTP/1.1\r
      GET /x HTTP/1.1 x
      GET /x HTTP/1.1 HTTP/1.1
      GET /x y HTTP/1.1
      GET /x\0 HTTP/1.1
      GET /\x7f HTTP/1.1
      GET /\x1b[31m HTTP/1.1
      GET /x
      GET /x␣
      GET HTTP/1.1
      /x HTTP/1.1
      GET
      GET /x HTTP/2.0
      GET /x HTTP/2
      GET /x HTTP/3.0
      GET /x HTTP/0.9
      GET /x HTTP/1.2
      GET /x HTTP/1.10
      GET /x HTTP/1.01
      GET /x HTTP/01.1
      GET /x HTTP/11
      GET /x HTTP/1
      GET /x HTTP/1.
      GET /x HTTP/.1
      GET /x HTTP/1,1
      GET /x HTTP/ 1.1
      GET /x HTTP /1.1
      GET /x HTTP-1.1
      GET /x HTTP//1.1
      GET /x http/1.1
      GET /x Http/1.1
      GET /x HTTPS/1.1
      GET /x XHTTP/1.1
      GET /x RTSP/1.0
      GET /x ICE/1.0
      SOURCE /x ICE/1.0
      GET /x SIP/2.0
      GET /x SHTTP/1.1
      PRI * HTTP/2.0
      G@T /x HTTP/1.1
      GE(T /x HTTP/1.1
      GET: /x HTTP/1.1
      "GET" /x HTTP/1.1
      G\0ET /x HTTP/1.1
      G\xc9T /x HTTP/1.1
      get /x HTTP/1.1
      Get /x HTTP/1.1
      GETT /x HTTP/1.1
      GE /x HTTP/1.1
      X /x HTTP/1.1
      __proto__ /x HTTP/1.1
      \nGET /x HTTP/1.1
      \n\nGET /x HTTP/1.1
      \rGET /x HTTP/1.1
      \n\r\nGET /x HTTP/1.1
      \r\n GET /x HTTP/1.1
      \r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET /x HTTP/1.1
      \xef\xbb\xbfGET /x HTTP/1.1
      \x16\x03\x01GET /x HTTP/1.1
      HTTP/1.1 200 OK`,
  ],
  [
    'H9 a request line that is too long',
    (row) => get().replace('GET /x HTTP/1.1', row),
    [`${'A'.repeat(100 * 1024)} /x HTTP/1.1`, `GET ${'/x'.repeat(50 * 1024)} HTTP/1.1`],
  ],
  // Line breaks within a chunk extension: one parser ends the line there, the other does not (CVE-2025-55315 in
  // Kestrel, CVE-2025-22871 in Go, CVE-2025-58056 in Netty).
  [
    'H83 the extension of a chunk',
    body,
    rows`
      5;\nhello\r\n0\r\n\r\n
      5;a\nb\r\nhello\r\n0\r\n\r\n
      5;a\rb\r\nhello\r\n0\r\n\r\n
      5;a\r\r\nhello\r\n0\r\n\r\n
      5;a="\r\n"\r\nhello\r\n0\r\n\r\n
      5;a="\n"\r\nhello\r\n0\r\n\r\n
      5\r\nhello\r\n0;\n\r\n\r\n
      5;a\0b\r\nhello\r\n0\r\n\r\n
      5\r\n ;a\r\nhello\r\n0\r\n\r\n
      5 a=b\r\nhello\r\n0\r\n\r\n`,
  ],
  // Endless chunk extensions: the server reads bytes that count towards no limit (CVE-2024-22019 in Node).
  [
    'H84 long extensions',
    body,
    [`5;${'a'.repeat(65_536)}\r\nhello\r\n0\r\n\r\n`, `1;${'a'.repeat(250)}\r\nx\r\n`.repeat(200)],
  ],
  // The end of a chunk: some parsers skip any two bytes for CRLF, others read them as data.
  [
    'H85 the end of a chunk',
    body,
    rows`
      5\r\nhello\n\n0\r\n\r\n
      5\r\nhello\n\r0\r\n\r\n
      5\r\nhello\r\r0\r\n\r\n
      5\r\nhello\r\n\r\n0\r\n\r\n
      5\r\nhello\r\n0\n\n
      5\r\nhello\r\n0\r\n\n
      5\r\nhello\r\n0\r\n\rx`,
  ],
  // Trailers: a parser that ends them elsewhere finds the next request elsewhere (CVE-2025-58068 in Eventlet, CVE-2025-53643 in aiohttp).
  [
    'H86 the trailers',
    (row) => body(`0\r\n${row}`),
    rows`
      A: b\n\r\n
      A: b\rc\r\n\r\n
      A: b\0c\r\n\r\n
      GET /smuggled HTTP/1.1\r\n\r\n
      : b\r\n\r\n
      A : b\r\n\r\n
      A: b\r\n c\r\n\r\n
      A: b\n\n`,
  ],
  [
    'H86 long trailers',
    (row) => body(`0\r\n${row}\r\n`),
    ['A: b\r\n'.repeat(2_731), `A: ${'b'.repeat(65_536)}\r\n`],
  ],
  // A name that is almost that of a framing field, before the real one.
  [
    'H87 the field',
    (row) => `${post(row, 'Content-Length: 0')}`,
    rows`
      Content-Length\0: 5
      Content-Length\xa0: 5
      \x0bContent-Length: 5
      Content-Length\x0c: 5
      Content Length: 5
      Transfer-Encoding\0: chunked
      Transfer-Encoding\xa0: chunked
      \x1fTransfer-Encoding: chunked
      Transfer\r-Encoding: chunked
      Transfer Encoding: chunked`,
  ],
  // An empty name makes some parsers drop the fields behind it (CVE-2023-25725 in HAProxy).
  ['H88 an empty name', (row) => `${post(...row.split(' | '))}hello`, rows`: x | Content-Length: 5`],
  ['H88 an empty name behind the length', () => `${post('Content-Length: 5', ':')}hello`, [':']],
  // A head that ends at CR LF CR and any byte (CVE-2025-23167 in llhttp).
  [
    'H89 the end of a head',
    (row) => get().slice(0, -4) + row,
    rows`\r\n\r
    \r\n\r\r`,
  ],
]

const SERVED: readonly Table[] = [
  [
    'H2 H4 the coding',
    coding,
    rows`
    chunked
    ␣ chunked␣␣
    cHuNkEd`,
  ],
  [
    'H6 the length',
    length,
    rows`
    5
    ␣ 5\t␣`,
  ],
  [
    'H7 the chunks',
    body,
    rows`
      00A\r\n0123456789\r\n0b\r\n0123456789\n\r\n000\r\n\r\n
      5;a=b;c="d e"\r\nhello\r\n0;x\r\n\r\n`,
  ],
  [
    'H84 chunks with a signature in each extension',
    body,
    [`${`400;chunk-signature=${'a'.repeat(64)}\r\n${'x'.repeat(1024)}\r\n`.repeat(300)}0\r\n\r\n`],
  ],
  [
    'H92 a name that begins with Content-Length',
    (size) => `${post(`${'Content-Length'.padEnd(Number(size), '0')}: 0`, 'Content-Length: 5')}hello`,
    ['255', '256', '257', '270', '511', '512', '1024', '4096', '8192'],
  ],
  [
    'H93 the length',
    (row) => post(`Content-Length: ${row}`) + 'x'.repeat(Number(row)),
    rows`
    0000000012
    012
    00`,
  ],
]

/** The rows of a table, each with the begin of its text for a title. */
const named = (rows: readonly string[]): [string, string][] =>
  rows.map((row) => [JSON.stringify(row.slice(0, 60)), row])

describe('The bytes of a request', () => {
  for (const [id, bytes, rows] of REFUSED)
    it.each(named(rows))(`${id} is refused, and nothing behind it is read: %s`, (_, row) =>
      expectFate(bytes(row), 'refused'),
    )

  // They prove that the rows above are refused for the fault in them and for nothing else.
  for (const [id, bytes, rows] of SERVED)
    it.each(named(rows))(`${id} is read, and the request behind it: %s`, (_, row) =>
      expectFate(bytes(row), 'served'),
    )
})
