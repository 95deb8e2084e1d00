import { expect, it } from 'vitest'
import { type Read, readResponse } from './read-response.ts'

const ok = 'HTTP/1.1 200 OK\r\n'
const chunks = `${ok}Transfer-Encoding: chunked\r\n\r\n`
const hint = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'
const unasked = 'HTTP/1.1 100 Continue\r\n\r\n'
const hi = `${ok}Content-Length: 2\r\n\r\nhi`

interface Row {
  readonly name: string
  readonly bytes: string
  readonly method?: string
  /** The body by the strict rules, in quotes, or the fault. */
  readonly strict: string
  /** The same by the rules `tolerant` and `auto`, if it differs. */
  readonly others?: string
  readonly tolerant?: string
}

const whole = (name: string, bytes: string, body = 'hi', method = 'GET'): Row => ({
  ...{ name, bytes, method, strict: `"${body}"` },
})
const faulty = (name: string, bytes: string, strict = 'malformed', others = strict): Row => ({
  ...{ name, bytes, strict, others },
})

/** What a device sends before it closes. */
const ROWS: readonly Row[] = [
  // Without a head, the connection says why it ended.
  faulty('H47 a head that stops', `${ok}X-A: b`, 'open'),
  ...['HTTP/1.1 1', 'H', 'HTTP/1.1 200 O', ok].map((bytes) =>
    faulty(`H47 C24 ${JSON.stringify(bytes)} and no more`, bytes, 'open'),
  ),
  faulty('H51 garbage', '\x00\x01\x02 what?\r\n\r\n'),
  faulty('H51 another protocol', '220 ftp.example.net ready\r\n\r\n'),
  faulty('H51 that of a stream', 'ICY 200 OK\r\n\r\nhi'),
  faulty('H51 a body without a head', '<html>hi</html>'),
  faulty('H51 text before the response', `debug: hello\r\n${ok}\r\nhi`),
  faulty('H51 bare LF', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nhi', 'malformed', '"hi"'),
  ...['HTTP/2.0', 'HTTP/0.9'].map((version) =>
    faulty(`H51 C24 ${version}`, hi.replace('HTTP/1.1', version), 'malformed', '"hi"'),
  ),
  faulty('H51 a status of two digits', 'HTTP/1.1 20 OK\r\n\r\nhi'),
  faulty('H51 a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\nhi'),
  faulty('H51 a status below 100', 'HTTP/1.1 099 OK\r\n\r\nhi'),
  faulty('H51 no status', 'HTTP/1.1 OK\r\n\r\nhi'),
  faulty(
    'H52 the same length twice',
    `${ok}Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi`,
    'malformed',
    '"hi"',
  ),
  faulty('H52 two different lengths', `${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!`),
  faulty('H52 a length that is no number', `${ok}Content-Length: 2 bytes\r\n\r\nhi`),
  faulty('H52 a negative length', `${ok}Content-Length: -1\r\n\r\nhi`),
  faulty('H52 an empty length', `${ok}Content-Length:\r\n\r\nhi`),
  faulty('H52 a length of twenty digits', `${ok}Content-Length: ${'9'.repeat(20)}\r\n\r\nhi`),
  faulty('H53 a coding that the request did not ask for', `${ok}Transfer-Encoding: gzip\r\n\r\n\x1f\x8b\x08`),
  faulty('H53 a coding below chunked', `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`),
  faulty(
    'H54 an unasked 101',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhi',
  ),
  ...[100, 102, 103].map((status) =>
    faulty(
      `H54 C23 five hundred ${status}s`,
      `HTTP/1.1 ${status} Wait\r\nLink: </a>\r\n\r\n`.repeat(500) + hi,
    ),
  ),
  faulty('H57 a head beyond 64 KiB', `${ok}X-A: ${'a'.repeat(70_000)}\r\n\r\nhi`, 'too-large'),
  faulty(
    'H57 an endless head of short lines',
    `${ok}${'X-Filler: 0123456789\r\n'.repeat(20_000)}\r\nhi`,
    'too-large',
  ),
  faulty('H49 C24 a length', `${ok}Content-Length: 1000\r\n\r\nonly this`, 'incomplete'),
  faulty('H49 C24 a length, one byte short', `${ok}Content-Length: 10\r\n\r\nonly this`, 'incomplete'),
  faulty('H49 C24 a length before its first byte', `${ok}Content-Length: 1000\r\n\r\n`, 'incomplete'),
  faulty(
    'H49 C24 a length, on a connection to be closed',
    `${ok}Connection: close\r\nContent-Length: 1000\r\n\r\nonly this`,
    'incomplete',
  ),
  faulty(
    'H49 C24 a length, of HTTP/1.0',
    'HTTP/1.0 200 OK\r\nContent-Length: 1000\r\n\r\nonly this',
    'incomplete',
  ),
  faulty('H49 C24 chunks', `${chunks}9\r\nonly this\r\n`, 'incomplete'),
  faulty(
    'H49 C24 chunks, on a connection to be closed',
    `${ok}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n`,
    'incomplete',
  ),
  faulty('H49 C24 half a chunk', `${chunks}99\r\nonly this`, 'incomplete'),
  faulty('H49 C24 an invalid chunk size', `${chunks}9\r\nonly this\r\nzz\r\n`),
  {
    // Only the tolerant rules take it for the end.
    ...faulty('H49 C24 half of the last chunk', `${chunks}9\r\nonly this\r\n0\r\n`, 'incomplete'),
    tolerant: '"only this"',
  },
  whole('H50 a 304 with a length', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n', ''),
  whole('H50 a 204 with a length', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n', ''),
  whole('H50 a response to HEAD with a length', `${ok}Content-Length: 5\r\n\r\n`, '', 'HEAD'),
  whole('H50 a response to HEAD in chunks', chunks, '', 'HEAD'),
  whole('H54 an unasked 100', unasked + hi),
  whole('H54 five unasked 100s', unasked.repeat(5) + hi),
  whole(
    'H54 an unasked 100 with fields, and a 103',
    `HTTP/1.1 100 Continue\r\nServer: x\r\n\r\n${hint}${unasked}${hi}`,
  ),
  whole('H54 three 103s', hint.repeat(3) + hi),
  whole(
    'H54 an unasked 100 before a response that contains the same bytes',
    `${unasked}HTTP/1.0 100 Continue\r\n\r\nHTTP/1.1 200 100\r\nContent-Length: 15\r\n\r\nHTTP/1.1 100 hi`,
    'HTTP/1.1 100 hi',
  ),
  whole('H57 HTTP/1.0 without a length', 'HTTP/1.0 200 OK\r\nServer: old\r\n\r\nhi'),
  whole(
    'H57 HTTP/1.0 kept alive',
    'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi',
  ),
  whole('H57 Connection: close', `${ok}Connection: close\r\nContent-Length: 2\r\n\r\nhi`),
  whole('H57 no length', `${ok}\r\nhi`),
  whole('H57 fields of 20 KB', `${ok}X-A: ${'a'.repeat(20_000)}\r\nContent-Length: 2\r\n\r\nhi`),
  whole('H57 a tab around the coding', `${ok}Transfer-Encoding:\t chunked \t\r\n\r\n2\r\nhi\r\n0\r\n\r\n`),
  whole('H57 a tab around the length', `${ok}Content-Length:\t2\t\r\n\r\nhi and more`),
  whole('H57 tabs in trailers', `${chunks}2\r\nhi\r\n0\r\nX-T:\tt\t\r\n\r\n`),
  whole(
    'H57 tabs in an interim response',
    `HTTP/1.1 103 Early Hints\r\nLink:\t</a>\t\r\n\r\n${ok}Content-Length: 2\t\r\n\r\nhi`,
  ),
  whole('H57 a hundred fields', `${ok}${'X-A: b\r\n'.repeat(100)}Content-Length: 2\r\n\r\nhi`),
]

const told = ({ end, body }: Read): string => (end.startsWith('whole') ? `"${body}"` : end)

it.each(ROWS)('$name', ({ bytes, method, strict, others = strict, tolerant = others }) => {
  const piece = Buffer.from(bytes, 'latin1')
  const inBytes = piece.length > 5_000 ? [piece] : Array.from(piece, (byte) => Buffer.of(byte))
  for (const [rules, expected] of [
    ['strict', strict],
    ['auto', others],
    ['tolerant', tolerant],
  ] as const) {
    for (const pieces of [[piece], inBytes]) {
      const read = readResponse(pieces, method, rules)
      expect([rules, told(read)]).toEqual([rules, expected])
      expect(read.interim.length).toBeLessThanOrEqual(16)
      expect(read.interim.map(([status]) => status)).not.toContain(100)
      if (rules === 'auto') expect(read.tolerated).toBe(others === '"hi"' && strict === 'malformed')
    }
  }
})

/** Statuses, codings and bytes behind the head of a response that ends with it, whatever its fields say (RFC 9112 §6.3). */
const HEADS = [
  ['GET', 'HTTP/1.1 304 Not Modified\r\n'],
  ['GET', 'HTTP/1.1 204 No Content\r\n'],
  ['HEAD', 'HTTP/1.1 200 OK\r\n'],
  ['HEAD', 'HTTP/1.0 404 Not Found\r\n'],
] as const
const NO_BODY = ['', 'Content-Length: 0\r\n']
const FRAMINGS = [
  ...NO_BODY,
  'Content-Length: 5\r\n',
  'Content-Length: 5\t\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Transfer-Encoding: chunked\t\r\n',
  'Transfer-Encoding: gzip\r\n',
  'Transfer-Encoding: gzip, chunked\r\n',
  'Transfer-Encoding: identity\r\n',
]
const STRAYS = ['', '\r\n', 'hello', '5\r\nhello\r\n0\r\n\r\n', hi, 'x'.repeat(100_000)]

it.each(HEADS)(
  'H50 C21 C24 a response to %s, %j, ends with its head, whatever follows it',
  (method, line) => {
    for (const framing of FRAMINGS)
      for (const stray of STRAYS)
        for (const rules of ['strict', 'auto', 'tolerant'] as const) {
          const bytes = Buffer.from(`${line}X-A: b\r\n${framing}\r\n${stray}`)
          const { end, body, tolerated } = readResponse([bytes], method, rules)
          expect([framing, stray, end.startsWith('whole'), body, tolerated]).toEqual([
            framing,
            stray,
            true,
            '',
            false,
          ])
        }
  },
)
