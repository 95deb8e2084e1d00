import { it } from 'vitest'
import { describeTransports } from '../support/transports.ts'
import { get, post, sharedFront } from './front.ts'
import { REQUEST_LINES } from './request-lines.ts'

type Case = readonly [name: string, bytes: string]

const chunked = 'Transfer-Encoding: chunked'
const chunks = '5\r\nhello\r\n0\r\n\r\n'
const coding = (value: string): string => post(`Transfer-Encoding: ${value}`) + chunks
const length = (value: string): string => `${post(`Content-Length: ${value}`)}hello`
const body = (text: string): string => post(chunked) + text

const both: readonly Case[] = [
  ['H1 a length, then chunks', post('Content-Length: 5', chunked) + chunks],
  ['H1 chunks, then a length', post(chunked, 'Content-Length: 5') + chunks],
  ['H1 a length of 0 with chunks', post('Content-Length: 0', chunked) + chunks],
  ['H1 the right length with chunks', post(`Content-Length: ${chunks.length}`, chunked) + chunks],
  ['H1 both in another case', post('content-LENGTH: 5', 'tRANSFER-eNCODING: CHUNKED') + chunks],
  ['H1 a length between two codings', post(chunked, 'Content-Length: 5', chunked) + chunks],
  ['H1 a length with an unknown coding', post('Content-Length: 5', 'Transfer-Encoding: x') + chunks],
  ['H1 a length with an empty coding', `${post('Content-Length: 5', 'Transfer-Encoding:')}hello`],
]

const codings: readonly Case[] = [
  ...[',chunked', ', chunked', ' ,chunked', ',,chunked', 'chunked,', 'chunked ,', ',chunked,', ','].map(
    (value): Case => [`H2 Transfer-Encoding "${value}"`, coding(value)],
  ),
  ...[
    'gzip, chunked',
    'gzip,chunked',
    'deflate, chunked',
    'identity, chunked',
    'x, chunked',
    'trailers, chunked',
  ].map((value): Case => [`H3 Transfer-Encoding "${value}"`, coding(value)]),
  ['H3 gzip and chunked in two fields', post('Transfer-Encoding: gzip', chunked) + chunks],
  ['H3 chunked and gzip in two fields', post(chunked, 'Transfer-Encoding: gzip') + chunks],
  ...[
    'chunked, chunked',
    'chunked,chunked',
    'chunked, gzip',
    'identity',
    'gzip',
    'xchunked',
    'chunkedx',
    'chunk',
  ].map((value): Case => [`H4 Transfer-Encoding "${value}"`, coding(value)]),
  ...[
    '"chunked"',
    "'chunked'",
    'chunked;q=1',
    'chunked; a=b',
    'chunked chunked',
    'chunked\tx',
    '',
    ' ',
    '\xa0chunked',
  ].map((value): Case => [`H4 Transfer-Encoding ${JSON.stringify(value)}`, coding(value)]),
  ...[
    '\x0bchunked',
    'chunked\x0b',
    '\x0cchunked',
    'chun\x00ked',
    'chunked\x00',
    '\x01chunked',
    'chunked\x7f',
    'chunked\rx',
    'chun\r\n ked',
    '\r\n chunked',
  ].map((value): Case => [`H4 Transfer-Encoding ${JSON.stringify(value)}`, coding(value)]),
  ['H4 chunked in two fields', post(chunked, chunked) + chunks],
  ['H4 chunked, and an empty field', post(chunked, 'Transfer-Encoding:') + chunks],
  ['H4 a blank before the colon', post('Transfer-Encoding : chunked') + chunks],
  ['H4 a tab before the colon', post('Transfer-Encoding\t: chunked') + chunks],
  ['H4 a control byte in the name', post('Transfer-Encoding\x01: chunked') + chunks],
  ['H5 chunks in HTTP/1.0', coding('chunked').replace('HTTP/1.1', 'HTTP/1.0')],
  [
    'H5 chunks in HTTP/1.0, the connection kept',
    (post(chunked, 'Connection: keep-alive') + chunks).replace('HTTP/1.1', 'HTTP/1.0'),
  ],
  ['H5 another coding in HTTP/1.0', coding('identity').replace('HTTP/1.1', 'HTTP/1.0')],
]

const lengths: readonly Case[] = [
  ['H6 the same length twice', `${post('Content-Length: 5', 'Content-Length: 5')}hello`],
  ['H6 two lengths', `${post('Content-Length: 5', 'Content-Length: 6')}hello`],
  ['H6 a length in two casings', `${post('content-length: 5', 'CONTENT-LENGTH: 5')}hello`],
  ['H6 a blank before the colon', `${post('Content-Length : 5')}hello`],
  ['H6 a tab before the colon', `${post('Content-Length\t: 5')}hello`],
  ...[
    '5, 5',
    '5,5',
    '5, 6',
    '5,',
    ',5',
    '+5',
    '-5',
    '-0',
    '0x5',
    '5h',
    '5.0',
    '5e0',
    '0b101',
    '0o5',
    '5_0',
    "5'0",
  ].map((value): Case => [`H6 Content-Length "${value}"`, length(value)]),
  ...[
    '',
    ' ',
    '5 5',
    '5\t5',
    '5;',
    '"5"',
    '\u00b2',
    'five',
    'NaN',
    'Infinity',
    '5\x0b',
    '5\x00',
    '5\r\n 5',
  ].map((value): Case => [`H6 Content-Length ${JSON.stringify(value)}`, length(value)]),
  ['H6 2^63', length('9223372036854775808')],
  ['H6 2^64', length('18446744073709551616')],
  ['H6 2^64 + 1', length('18446744073709551617')],
  ['H6 2^64 + 5', length('18446744073709551621')],
  ['H6 2^32 + 5 behind zeros', length(`${'0'.repeat(400)}4294967301`)],
  ['H6 a number of a thousand digits', length('5'.repeat(1000))],
]

const sizes: readonly Case[] = [
  ...[
    '0x5',
    '0X5',
    ' 5',
    '\t5',
    '+5',
    '-5',
    '5 ',
    '5\t',
    '5h',
    '5.',
    '',
    ' ',
    ';',
    ';a=b',
    '"5"',
    '5_',
    'g',
    '\x00',
    '5\x00',
  ].map((size): Case => [`H7 a chunk size ${JSON.stringify(size)}`, body(`${size}\r\nhello\r\n0\r\n\r\n`)]),
  ...[
    'ffffffffffffffff',
    '10000000000000000',
    '10000000000000005',
    'fffffffffffffffff',
    '20000000000000',
    '20000000000005',
    '7fffffffffffffff',
  ].map((size): Case => [`H7 a chunk size of ${size}`, body(`${size}\r\nhello\r\n0\r\n\r\n`)]),
  ['H7 a chunk size behind many zeros', body(`${'0'.repeat(16)}5\r\nhello\r\n0\r\n\r\n`)],
  ['H7 a last chunk of many zeros', body(`5\r\nhello\r\n${'0'.repeat(20)}\r\n\r\n`)],
  ['H7 a size line that ends with LF', body('5\nhello\r\n0\r\n\r\n')],
  ['H7 a size line that ends with CR', body('5\rhello\r\n0\r\n\r\n')],
  ['H7 a size line that ends with CR CR LF', body('5\r\r\nhello\r\n0\r\n\r\n')],
  ['H7 data that ends with LF', body('5\r\nhello\n0\r\n\r\n')],
  ['H7 data that ends with nothing', body('5\r\nhello0\r\n\r\n')],
  ['H7 data that ends with two other bytes', body('5\r\nhelloXX0\r\n\r\n')],
  ['H7 data longer than its size', body('4\r\nhello\r\n0\r\n\r\n')],
  ['H7 a last chunk that ends with LF', body('5\r\nhello\r\n0\n\r\n')],
  ['H7 an endless extension', body(`5;${'a'.repeat(300)}\r\nhello\r\n0\r\n\r\n`)],
]

const good: readonly Case[] = [
  ['H2 "chunked" alone', coding('chunked')],
  ['H4 "chunked" with spaces around it', coding('  chunked  ')],
  ['H4 "chunked" in another case', coding('cHuNkEd')],
  ['H6 a length of "5"', length('5')],
  ['H6 a length with whitespace around it', length('  5\t ')],
  [
    'H7 chunk sizes in either case and with leading zeros',
    body(`00A\r\n0123456789\r\n0b\r\n0123456789\n\r\n000\r\n\r\n`),
  ],
  ['H7 a chunk with an extension', body('5;a=b;c="d e"\r\nhello\r\n0;x\r\n\r\n')],
]

describeTransports(
  'Framing',
  (transport) => {
    const front = sharedFront(transport)

    it.each([...both, ...codings, ...lengths, ...sizes])(
      '%s: 400 and close, and no byte reaches the device',
      (_name, bytes) => front.expectRefused(bytes),
    )

    it.each(REQUEST_LINES)('H9 the request line %j: 400 and close, and no byte reaches the device', (line) =>
      front.expectRefused(get().replace('GET /x HTTP/1.1', line)),
    )

    // Proves that the cases above are refused for the fault in their name and for nothing else.
    it.each(good)('%s is served', async (_name, bytes) => {
      const raw = await front.send(bytes)
      await raw.waitFor('from the device')
      raw.end()
      await raw.closed
    })
  },
  ['http1'],
)
