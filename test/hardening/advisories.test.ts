import { describe, expect, it } from 'vitest'
import { headOf, responsesIn } from '../support/raw-responses.ts'
import { describeTransports } from '../support/transports.ts'
import { get, post, SMUGGLED, sharedFront } from './front.ts'

type Case = readonly [name: string, bytes: string]

const chunked = (...lines: readonly string[]): string => post('Transfer-Encoding: chunked') + lines.join('')
const LAST = '0\r\n\r\n'

/** A request inside a body: a parser that frames the body otherwise would run it. */
const INNER = headOf('GET /smuggled HTTP/1.1', 'Host: device')

const refused: readonly Case[] = [
  // Line breaks within a chunk extension: one parser ends the line there, the other does not (CVE-2025-55315 in
  // Kestrel, CVE-2025-22871 in Go, CVE-2025-58056 in Netty).
  ['H83 an LF in place of an extension', chunked('5;\nhello\r\n', LAST)],
  ['H83 an LF within an extension', chunked('5;a\nb\r\nhello\r\n', LAST)],
  ['H83 a CR within an extension', chunked('5;a\rb\r\nhello\r\n', LAST)],
  ['H83 a CR at the end of an extension', chunked('5;a\r\r\nhello\r\n', LAST)],
  ['H83 a line break within a quoted extension', chunked('5;a="\r\n"\r\nhello\r\n', LAST)],
  ['H83 an LF within a quoted extension', chunked('5;a="\n"\r\nhello\r\n', LAST)],
  ['H83 an LF in the extension of the last chunk', chunked('5\r\nhello\r\n', '0;\n\r\n\r\n')],
  ['H83 a NUL in an extension', chunked('5;a\0b\r\nhello\r\n', LAST)],
  ['H83 a size on two lines', chunked('5\r\n ;a\r\nhello\r\n', LAST)],
  ['H83 an extension without its semicolon', chunked('5 a=b\r\nhello\r\n', LAST)],
  // Endless chunk extensions: the server reads bytes that count towards no limit (CVE-2024-22019 in Node).
  ['H84 an extension of 64 KiB', chunked(`5;${'a'.repeat(65_536)}\r\nhello\r\n`, LAST)],
  // The end of a chunk: some parsers skip any two bytes for CRLF, others read them as data.
  ['H85 two LF behind the data', chunked('5\r\nhello\n\n', LAST)],
  ['H85 LF CR behind the data', chunked('5\r\nhello\n\r', LAST)],
  ['H85 CR CR behind the data', chunked('5\r\nhello\r\r', LAST)],
  ['H85 a line break too many behind the data', chunked('5\r\nhello\r\n\r\n', LAST)],
  ['H85 a body that ends with LF LF', chunked('5\r\nhello\r\n', '0\n\n')],
  ['H85 a body that ends with CR LF LF', chunked('5\r\nhello\r\n', '0\r\n\n')],
  ['H85 a body that ends with CR LF CR x', chunked('5\r\nhello\r\n', '0\r\n\rx')],
  // Trailers: a parser that ends them elsewhere finds the next request elsewhere (CVE-2025-58068 in
  // Eventlet, CVE-2025-53643 in aiohttp).
  ['H86 an LF behind a trailer', chunked('0\r\n', 'A: b\n\r\n')],
  ['H86 a CR within a trailer', chunked('0\r\n', 'A: b\rc\r\n\r\n')],
  ['H86 a NUL within a trailer', chunked('0\r\n', 'A: b\0c\r\n\r\n')],
  ['H86 a trailer without a colon', chunked('0\r\n', 'GET /smuggled HTTP/1.1\r\n\r\n')],
  ['H86 a trailer without a name', chunked('0\r\n', ': b\r\n\r\n')],
  ['H86 a space before the colon of a trailer', chunked('0\r\n', 'A : b\r\n\r\n')],
  ['H86 a folded trailer', chunked('0\r\n', 'A: b\r\n c\r\n\r\n')],
  ['H86 trailers that end with LF LF', chunked('0\r\n', 'A: b\n\n')],
  ['H86 16 KiB of trailers', chunked('0\r\n', 'A: b\r\n'.repeat(2_731), '\r\n')],
  ['H86 a trailer of 64 KiB', chunked('0\r\n', `A: ${'b'.repeat(65_536)}\r\n\r\n`)],
  // A name that is almost that of a framing field, before the real one.
  ...[
    'Content-Length\x00',
    'Content-Length\xa0',
    '\x0bContent-Length',
    'Content-Length\x0c',
    'Content Length',
  ].map((name): Case => [`H87 ${JSON.stringify(name)}`, post(`${name}: 5`, 'Content-Length: 0')]),
  ...[
    'Transfer-Encoding\x00',
    'Transfer-Encoding\xa0',
    '\x1fTransfer-Encoding',
    'Transfer\r-Encoding',
    'Transfer Encoding',
  ].map((name): Case => [`H87 ${JSON.stringify(name)}`, post(`${name}: chunked`, 'Content-Length: 0')]),
  // An empty name makes some parsers drop the fields behind it (CVE-2023-25725 in HAProxy).
  ['H88 an empty name before the length', `${post(': x', 'Content-Length: 5')}hello`],
  ['H88 an empty name behind the length', `${post('Content-Length: 5', ':')}hello`],
  // A head that ends at CR LF CR and any byte (CVE-2025-23167 in llhttp).
  ['H89 a request behind CR LF CR', `${get().slice(0, -4)}\r\n\r${SMUGGLED}`],
  ['H89 a request behind CR LF CR CR', `${get().slice(0, -4)}\r\n\r\r${SMUGGLED}`],
]

/** Heads that are refused before the body arrives. */
const EARLY: readonly (readonly [name: string, head: (...framing: readonly string[]) => string])[] = [
  ['no token', (...f) => headOf('POST /x HTTP/1.1', 'Host: device', ...f)],
  ['no token, on a GET', (...f) => headOf('GET /x HTTP/1.1', 'Host: device', ...f)],
  ['an expectation', (...f) => headOf('POST /x HTTP/1.1', 'Host: device', 'Expect: 100-continue', ...f)],
  ['an unknown expectation', (...f) => post('Expect: y 100-continue', ...f)],
  ['OPTIONS *', (...f) => post(...f).replace('POST /x', 'OPTIONS *')],
  ['TRACE', (...f) => post(...f).replace('POST /x', 'TRACE /x')],
  ['a wrong method for tokens', (...f) => post(...f).replace('POST /x', 'PUT /oauth/token')],
  [
    'a wrong content type for tokens',
    (...f) => post('Content-Type: text/plain', ...f).replace('/x', '/oauth/token'),
  ],
  ['no content type for tokens', (...f) => post(...f).replace('/x', '/oauth/token')],
]

describeTransports(
  'Advisories in HTTP/1',
  (transport) => {
    const front = sharedFront(transport)

    it.each(refused)('%s: 400 and close, and no byte reaches the device', (_name, bytes) =>
      front.expectRefused(bytes),
    )

    it('H84 an upload with long extensions and hardly any data ends with 400, and its end does not reach the device', async () => {
      const { device } = front.sidecar
      const before = device.requests.length
      const responses = await front.responsesTo(
        chunked(`1;${'a'.repeat(250)}\r\nx\r\n`.repeat(200), LAST) + SMUGGLED,
      )
      expect(responses.map(({ status }) => status)).toEqual([400])
      expect(device.requests.slice(before).filter(({ body }) => body !== undefined)).toEqual([])
    })

    it('H84 an upload with a signature in the extension of each chunk is accepted', async () => {
      const chunk = `400;chunk-signature=${'a'.repeat(64)}\r\n${'x'.repeat(1024)}\r\n`
      const raw = await front.send(chunked(chunk.repeat(300), LAST) + get('Connection: close'))
      expect((await raw.closed).match(/HTTP\/1\.1 200/g)).toHaveLength(2)
      expect(front.sidecar.device.requests.at(-2)?.body).toHaveLength(300 * 1024)
    })

    it.each(['GET  /x HTTP/1.1', 'GET /x RTSP/1.0', '\n\nGET /x HTTP/1.1'])(
      'H90 the request line %j is refused when it comes byte by byte and when it comes behind a good request',
      async (line) => {
        await front.expectRefused(get().replace('GET /x HTTP/1.1', line), 200)
        const responses = await front.responsesTo(get() + get().replace('GET /x HTTP/1.1', line) + SMUGGLED)
        expect(responses.map(({ status }) => status)).toEqual([200, 400])
      },
    )

    // The body of a request with an early response must not be read as the next request (0.CL desync).
    describe.each(EARLY)('H91 refused early for %s:', (_name, head) => {
      it.each([
        ['with Content-Length', `Content-Length: ${INNER.length}`, INNER],
        ['in chunks', 'Transfer-Encoding: chunked', `${INNER.length.toString(16)}\r\n${INNER}\r\n0\r\n\r\n`],
      ])(
        'H91 a body %s is not read as a request, in one packet with the head or later',
        async (_framed, framing, body) => {
          const before = front.sidecar.device.byteCount
          for (const later of [false, true]) {
            const raw = await front.send(head(framing) + (later ? '' : body))
            if (later) {
              await raw.waitFor('\r\n\r\n{')
              raw.write(body)
            }
            raw.end()
            expect((await raw.closed).match(/HTTP\/1\.1 \d+/g)).toHaveLength(1)
          }
          expect(front.sidecar.device.byteCount).toBe(before)
        },
      )
    })

    // A parser that keeps the length of a name in too few bits truncates it (CVE-2021-40346 in HAProxy).
    it.each([255, 256, 257, 270, 511, 512, 1024, 4096, 8192])(
      'H92 a name of %i bytes that begins with Content-Length does not frame the body',
      async (size) => {
        const { device } = front.sidecar
        const before = device.requests.length
        const name = 'Content-Length'.padEnd(size, '0')
        const raw = await front.send(
          `${post(`${name}: 0`, 'Content-Length: 5')}hello${get('Connection: close')}`,
        )
        expect((await raw.closed).match(/HTTP\/1\.1 200/g)).toHaveLength(2)
        expect(device.requests.slice(before).map(({ body }) => body?.toString())).toEqual(['hello', ''])
      },
    )

    it.each([
      ['0000000012', 12],
      ['012', 12],
      ['00', 0],
    ])(
      'H93 a Content-Length of %s is read as decimal and forwarded without leading zeros',
      async (length, size) => {
        const { device } = front.sidecar
        const before = device.requests.length
        const raw = await front.send(
          `${post(`Content-Length: ${length}`)}${'x'.repeat(size)}${get('Connection: close')}`,
        )
        expect(responsesIn(await raw.closed).map(({ status }) => status)).toEqual([200, 200])
        const [upload] = device.requests.slice(before)
        expect(upload?.body).toHaveLength(size)
        expect(upload?.values('Content-Length')).toEqual([String(size)])
      },
    )
  },
  ['http1'],
)

describeTransports(
  'Advisories in HTTP/2',
  (transport) => {
    describe.each(['strict', 'tolerant'])('with the %s parser', (parser) => {
      const front = sharedFront(transport, { upstream: { parser }, status_codes: 'http' })

      // A pseudo-header of HTTP/2 can hold a line break, which would be several lines in HTTP/1 (H2.X downgrade).
      it.each([
        ...[
          'GE T',
          'GET /smuggled HTTP/1.1\r\nX: y',
          'GET\r\n',
          'GET\t',
          ' GET',
          'G(T',
          'G\xc9T',
          'GET\0',
          ':',
          'GET/x',
        ],
      ])('H94 a method of %j is 400 and does not reach the device', async (method) => {
        const before = front.sidecar.device.byteCount
        const status = await front.sidecar
          .request({ method, path: '/x', token: front.token })
          .then((response) => response.status)
          .catch(() => 400)
        expect(status).toBe(400)
        expect(front.sidecar.device.byteCount).toBe(before)
      })
    })
  },
  ['h2'],
)
