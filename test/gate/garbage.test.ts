import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { classify } from '../../src/gate/classify.ts'
import { LISTEN_BOUNDS } from '../../src/listen/connection-caps.ts'
import { readInPieces } from '../http1/intake.ts'
import { headOf as request } from '../support/http1-reader.ts'

const INNER = request('GET /smuggled HTTP/1.1', 'Host: x')

/** What is no request, or none that two programs read in the same way. */
const GARBAGE: readonly (readonly [string, string | Buffer])[] = [
  ['random bytes', Buffer.concat([Buffer.from([0xff, 0x00, 0x80]), randomBytes(2000)])],
  ['zeros', Buffer.alloc(300)],
  ['a TLS greeting', Buffer.from('16030100f8010000f40303', 'hex')],
  ['an SSH greeting', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ['a mail greeting', 'EHLO example.net\r\n'],
  ['a SOCKS greeting', Buffer.from([5, 1, 0])],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a response', request('HTTP/1.1 200 OK', 'Content-Length: 0')],
  ['HTTP/0.9', 'GET /\r\n\r\n'],
  ['a version that does not exist', request('GET / HTTP/9.9', 'Host: x')],
  ['RTSP, whose request line looks like that of HTTP', request('GET / RTSP/1.0', 'Host: x')],
  ['a method with an invalid character', request('G@T / HTTP/1.1', 'Host: x')],
  ['no method', request('/ HTTP/1.1', 'Host: x')],
  ['a space within the path', request('GET /a b HTTP/1.1', 'Host: x')],
  ['a path without a leading slash', request('GET x HTTP/1.1', 'Host: x')],
  ['a field without a colon', request('GET / HTTP/1.1', 'Host: x', 'nothing')],
  ['a field without a name', request('GET / HTTP/1.1', 'Host: x', ': x')],
  ['a space before the colon', request('GET / HTTP/1.1', 'Host: x', 'A : b')],
  ['a folded field', request('GET / HTTP/1.1', 'Host: x', 'A: b', ' c')],
  ['a NUL in a field', request('GET / HTTP/1.1', 'Host: x', 'A: b\0c')],
  ['a bare CR in a field', request('GET / HTTP/1.1', 'Host: x', 'A: b\rB: c')],
  ['a control character in a name', request('GET / HTTP/1.1', 'Host: x', 'A\x01: b')],
  ['two hosts', request('GET / HTTP/1.1', 'Host: x', 'Host: y')],
  ['no host', request('GET / HTTP/1.1')],
  ['an invalid host', request('GET / HTTP/1.1', 'Host: a b/c@d')],
  ['a length that is no number', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: ten')],
  ['a negative length', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: -1')],
  ['a length with a sign', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: +1')],
  ['a hexadecimal length', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: 0x1')],
  ['an overflowing length', request('POST / HTTP/1.1', 'Host: x', `Content-Length: ${'9'.repeat(30)}`)],
  ['two lengths', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: 1', 'Content-Length: 2')],
  ['a list of lengths', request('POST / HTTP/1.1', 'Host: x', 'Content-Length: 1, 2')],
  [
    'Content-Length and chunked',
    `${request('POST / HTTP/1.1', 'Host: x', 'Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
  ],
  ['an unknown transfer coding', request('POST / HTTP/1.1', 'Host: x', 'Transfer-Encoding: gzip')],
  [
    'chunked that is not the last coding',
    request('POST / HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked, gzip'),
  ],
  ['chunked twice', request('POST / HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked, chunked')],
  ['chunks in HTTP/1.0', `${request('POST / HTTP/1.0', 'Host: x', 'Transfer-Encoding: chunked')}0\r\n\r\n`],
  ['a line of 200,000 bytes', 'A'.repeat(200_000)],
  ['a path of 200,000 bytes', request(`GET /${'a'.repeat(200_000)} HTTP/1.1`, 'Host: x')],
  ['a field of 200,000 bytes', request('GET / HTTP/1.1', 'Host: x', `A: ${'b'.repeat(200_000)}`)],
  ['nine empty lines', `${'\r\n'.repeat(9)}${INNER}`],
  ['100,000 empty lines', `${'\r\n'.repeat(100_000)}${INNER}`],
  ['a bare LF', `\n${INNER}`],
  ['CR CR LF', `\r\r\n${INNER}`],
  ['a line of one space', ` \r\n${INNER}`],
  ['an empty line before the HTTP/2 preface', '\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['20,000 fields', request('GET / HTTP/1.1', 'Host: x', ...Array(20_000).fill('A: b'))],
]

const RULES = { headerCaps: LISTEN_BOUNDS, revocationPath: undefined, browser: false, cors: undefined }

/** The fault of a head that is larger than a head may be. All others are malformed. */
const TOO_LARGE = /,000 (?:bytes|fields)$/

it.each(GARBAGE)('C20 %s is refused, and the request behind it is not read', async (name, text) => {
  const bytes = typeof text === 'string' ? Buffer.from(text, 'latin1') : text
  const inner = Buffer.from(INNER)
  /** Why what follows so many good requests is refused. */
  const refusalOf = async (good: number, ...pieces: readonly Buffer[]): Promise<string | undefined> => {
    const { messages, fault } = await readInPieces(pieces, {
      most: good + 1,
      maxHeaderSize: LISTEN_BOUNDS.maxHeaderSize,
    })
    for (const { head } of messages.slice(0, good))
      expect([head.method, head.target]).toEqual(['GET', '/smuggled'])
    if (fault === 'broken') return 'malformed'
    if (fault !== undefined) return messages.length === good ? fault : `${messages.length} requests`
    // What the reader takes for a request, the gate refuses. It closes the connection, so nothing behind it is read.
    const last = messages[good]
    return last && classify(last.head, RULES).fault?.kind
  }
  const expected = TOO_LARGE.test(name) ? 'header-too-large' : 'malformed'
  expect(await refusalOf(0, bytes, inner)).toBe(expected)
  expect(await refusalOf(1, inner, bytes, inner)).toBe(expected)
  expect(await refusalOf(1, Buffer.concat([inner, bytes, inner]))).toBe(expected)
})
