import { expect, it } from 'vitest'
import { readTolerantly, TolerantHeadEnd } from '../../src/http1/tolerant-head.ts'
import { growth, LINEAR } from '../support/lived-time.ts'
import { readResponse } from './read-response.ts'

const ok = 'HTTP/1.1 200 OK\r\n'

interface Malformed {
  readonly name: string
  readonly bytes: string
  readonly reason?: string
  readonly body?: string
  /** The `X-` fields that the client gets. */
  readonly fields?: readonly string[]
}

const readable: readonly Malformed[] = [
  { name: 'bare LF', bytes: 'HTTP/1.1 200 OK\nX-A: b\nContent-Length: 2\n\nhi', fields: ['X-A', 'b'] },
  { name: 'CR CR LF', bytes: 'HTTP/1.1 200 OK\r\r\nContent-Length: 2\r\r\n\r\r\nhi' },
  { name: 'newlines before the response', bytes: `\r\n\n\r\n${ok}Content-Length: 2\r\n\r\nhi` },
  { name: 'the same length twice', bytes: `${ok}Content-Length: 2\r\ncontent-length: 2\r\n\r\nhi` },
  { name: 'the same length twice in a list', bytes: `${ok}Content-Length: 2, 2\r\n\r\nhi` },
  { name: 'a space after the length', bytes: `${ok}Content-Length: 2 \r\n\r\nhi` },
  {
    name: 'a length and chunks',
    bytes: `${ok}Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
  },
  {
    name: 'chunked in two fields',
    bytes: `${ok}Transfer-Encoding: chunked\r\ntransfer-encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
  },
  {
    name: 'chunks with bare LF',
    bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n1;x=y\nh\n01  \ni\n0\n\nand more`,
  },
  {
    name: 'chunks without line ends, the last one unfinished',
    bytes: `${ok}Transfer-Encoding: chunked\r\n\r\n1\r\nh1\r\ni0\r\n`,
  },
  { name: 'the identity coding', bytes: `${ok}Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi` },
  { name: 'no reason phrase', bytes: 'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nhi', reason: '' },
  { name: 'a lower-case status line', bytes: 'http/1.1 200 ok\r\nContent-Length: 2\r\n\r\nhi', reason: 'ok' },
  { name: 'a status line with gaps', bytes: 'HTTP/1.1  200\t OK\r\nContent-Length: 2\r\n\r\nhi' },
  { name: 'an unknown minor version', bytes: 'HTTP/1.12 200 OK\r\nContent-Length: 2\r\n\r\nhi' },
  { name: 'a control character in the reason', bytes: 'HTTP/1.1 200 O\x01K\r\n\r\nhi', reason: 'O K' },
  {
    name: 'control characters in a value',
    bytes: `${ok}X-A: \x01a\x00b\x7f\rc\r\nContent-Length: 2\r\n\r\nhi`,
    fields: ['X-A', 'a b  c'],
  },
  {
    name: 'bytes beyond ASCII in a value',
    bytes: `${ok}X-A: \xa0caf\xe9\xa0\r\nContent-Length: 2\r\n\r\nhi`,
    fields: ['X-A', '\xa0caf\xe9\xa0'],
  },
  {
    name: 'a space before the colon',
    bytes: `${ok}X-A : b\r\nX-B\t: c\r\nContent-Length : 2\r\n\r\nhi`,
    fields: ['X-A', 'b', 'X-B', 'c'],
  },
  {
    name: 'folded lines',
    bytes: `${ok} lost\r\nX-A: b\r\n\t c\r\nX-B:\r\n d\r\nContent-Length: 2\r\n\r\nhi`,
    fields: ['X-A', 'b c', 'X-B', 'd'],
  },
  {
    name: 'lines that are no field, with folded lines after them',
    bytes: `${ok}nonsense\r\n lost\r\nX(odd): a\r\n: b\r\nX-\xe9: c\r\n d\r\nX-A: b\r\nContent-Length: 2\r\n\r\nhi`,
    fields: ['X-A', 'b'],
  },
  { name: 'an unsolicited 100', bytes: `HTTP/1.1 100 Continue\n\n\n${ok}Content-Length: 2\r\n\r\nhi` },
  { name: 'more body than its length', bytes: `${ok}Content-Length: 2\r\n\r\nhi and more` },
  { name: 'HTTP/1.0 with a body that ends with the connection', bytes: 'HTTP/1.0 200 OK\n\nhi' },
  {
    name: 'two thousand fields',
    bytes: `${ok}${'X-A: b\n'.repeat(2000)}Content-Length: 2\n\nhi`,
    fields: Array.from({ length: 4000 }, (_, i) => (i % 2 === 0 ? 'X-A' : 'b')),
  },
  {
    name: 'a head of 60 KB',
    bytes: `${ok}X-A: ${'a'.repeat(60_000)}\n\nhi`,
    fields: ['X-A', 'a'.repeat(60_000)],
  },
]

it.each(readable)('the tolerant parser reads $name', ({ bytes, reason = 'OK', body = 'hi', fields = [] }) => {
  const whole = Buffer.from(bytes, 'latin1')
  const inBytes = whole.length > 5_000 ? [whole] : Array.from(whole, (byte) => Buffer.of(byte))
  for (const pieces of [[whole], inBytes]) {
    const read = readResponse(pieces, 'GET', 'tolerant')
    expect([read.head?.slice(0, 2), read.body]).toEqual([[200, reason], body])
    expect(read.head?.[2].filter((_, i, all) => /^x-/i.test(all[i - (i % 2)] ?? ''))).toEqual(fields)
    expect(read.end).toMatch(/^whole/)
  }
})

it.each([
  ['HEAD', `${ok}Content-Length: 2\n\nhi`, 200],
  ['GET', 'HTTP/1.1 204 No Content\nContent-Length: 2\n\nhi', 204],
  ['GET', 'HTTP/1.1 304 Not Modified\nContent-Length: 2\n\nhi', 304],
])(
  'the tolerant parser reads a response to %s without the body that it must not have',
  (method, bytes, status) => {
    const { head, body } = readResponse([Buffer.from(bytes)], method, 'tolerant')
    expect([head?.[0], body]).toEqual([status, ''])
  },
)

it('the tolerant parser reads a head in linear time', () => {
  const grown = growth(8_000, (size) => {
    const head = readTolerantly(`HTTP/1.1 200 OK\r\nX-A: a${'\r'.repeat(size)}b\r\nX-B: c`, 'GET')
    expect(head?.fields.map((each) => each.length)).toEqual([3, size + 2, 3, 1])
  })
  expect(grown).toBeLessThan(LINEAR)
})

it('the tolerant parser scans each byte of a head once, however it is split', () => {
  const grown = growth(4_000, (size) => {
    const bytes = Buffer.from(`HTTP/1.1 200 OK\n${'a\n'.repeat(size)}\nbody`)
    const ending = new TolerantHeadEnd()
    let found: ReturnType<TolerantHeadEnd['find']>
    for (let end = 1; found === undefined && end <= bytes.length; end += 1) found = ending.find(bytes, 0, end)
    expect(found).toEqual({ head: bytes.length - 6, body: bytes.length - 4 })
  })
  expect(grown).toBeLessThan(LINEAR)
})
