import { describe, expect, it } from 'vitest'
import { answersIn, typed } from '../support/raw-answers.ts'
import { describeTransports } from '../support/transports.ts'
import { get, heldFront, post, SMUGGLED } from './front.ts'

type Case = readonly [name: string, bytes: string]

const chunked = (...lines: readonly string[]): string => post('Transfer-Encoding: chunked') + lines.join('')
const LAST = '0\r\n\r\n'

/** A request as somebody's body, to be run by whoever frames that body otherwise. */
const INNER = typed('GET /smuggled HTTP/1.1', 'Host: device')

const refused: readonly Case[] = [
  // Line breaks within a chunk extension: one reader ends the line there, the other does not (CVE-2025-55315 in
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
  // Extensions without end: bytes that are paid for and never counted (CVE-2024-22019 in Node).
  ['H84 an extension of 64 KiB', chunked(`5;${'a'.repeat(65_536)}\r\nhello\r\n`, LAST)],
  // What ends a chunk is skipped without a look by some (any two bytes for CRLF), or is taken for data by others.
  ['H85 two LF behind the data', chunked('5\r\nhello\n\n', LAST)],
  ['H85 LF CR behind the data', chunked('5\r\nhello\n\r', LAST)],
  ['H85 CR CR behind the data', chunked('5\r\nhello\r\r', LAST)],
  ['H85 a line break too many behind the data', chunked('5\r\nhello\r\n\r\n', LAST)],
  ['H85 a body that ends with LF LF', chunked('5\r\nhello\r\n', '0\n\n')],
  ['H85 a body that ends with CR LF LF', chunked('5\r\nhello\r\n', '0\r\n\n')],
  ['H85 a body that ends with CR LF CR x', chunked('5\r\nhello\r\n', '0\r\n\rx')],
  // Trailers are lines like others: whoever ends them elsewhere reads the next request elsewhere (CVE-2025-58068 in
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
  // A name that is almost the one that frames the message, behind or before the real one.
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
  // An empty name makes some forget the fields behind it (CVE-2023-25725 in HAProxy).
  ['H88 an empty name before the length', `${post(': x', 'Content-Length: 5')}hello`],
  ['H88 an empty name behind the length', `${post('Content-Length: 5', ':')}hello`],
  // A head that ends at CR LF CR and any byte (CVE-2025-23167 in llhttp).
  ['H89 a request behind CR LF CR', `${get().slice(0, -4)}\r\n\r${SMUGGLED}`],
  ['H89 a request behind CR LF CR CR', `${get().slice(0, -4)}\r\n\r\r${SMUGGLED}`],
]

const WITHOUT_TOKEN = (...lines: readonly string[]): string => typed(...lines)

/** Heads that are refused before their body is there. */
const EARLY: readonly (readonly [name: string, head: (...framing: readonly string[]) => string])[] = [
  ['no token', (...f) => WITHOUT_TOKEN('POST /x HTTP/1.1', 'Host: device', ...f)],
  ['no token, on a GET', (...f) => WITHOUT_TOKEN('GET /x HTTP/1.1', 'Host: device', ...f)],
  [
    'an expectation',
    (...f) => WITHOUT_TOKEN('POST /x HTTP/1.1', 'Host: device', 'Expect: 100-continue', ...f),
  ],
  ['an expectation that nobody meets', (...f) => post('Expect: y 100-continue', ...f)],
  ['OPTIONS *', (...f) => post(...f).replace('POST /x', 'OPTIONS *')],
  ['TRACE', (...f) => post(...f).replace('POST /x', 'TRACE /x')],
  ['a wrong method for tokens', (...f) => post(...f).replace('POST /x', 'PUT /oauth/token')],
  ['a wrong type for tokens', (...f) => post('Content-Type: text/plain', ...f).replace('/x', '/oauth/token')],
  ['no type for tokens', (...f) => post(...f).replace('/x', '/oauth/token')],
]

describeTransports(
  'Advisories',
  (transport) => {
    const front = heldFront(transport)

    it.each(refused)('%s is refused with 400, closed, not a byte at the device', (_name, bytes) =>
      front.refuses(bytes),
    )

    it('H84 many extensions and next to no data end the upload with 400, and the device never sees its end', async () => {
      const { device } = front.sidecar
      const before = device.requests.length
      const answers = await front.answersTo(
        chunked(`1;${'a'.repeat(250)}\r\nx\r\n`.repeat(200), LAST) + SMUGGLED,
      )
      expect(answers.map(({ status }) => status)).toEqual([400])
      expect(device.requests.slice(before).filter(({ body }) => body !== undefined)).toEqual([])
    })

    it('H84 a short extension on each chunk of an upload, as some clients sign them, is nothing', async () => {
      const chunk = `400;chunk-signature=${'a'.repeat(64)}\r\n${'x'.repeat(1024)}\r\n`
      const raw = await front.send(chunked(chunk.repeat(300), LAST) + get('Connection: close'))
      expect((await raw.closed).match(/HTTP\/1\.1 200/g)).toHaveLength(2)
      expect(front.sidecar.device.requests.at(-2)?.body).toHaveLength(300 * 1024)
    })

    it.each(['GET  /x HTTP/1.1', 'GET /x RTSP/1.0', '\n\nGET /x HTTP/1.1'])(
      'H90 the request line %j is refused byte by byte, and behind a good request, just the same',
      async (line) => {
        await front.refuses(get().replace('GET /x HTTP/1.1', line), 200)
        const answers = await front.answersTo(get() + get().replace('GET /x HTTP/1.1', line) + SMUGGLED)
        expect(answers.map(({ status }) => status)).toEqual([200, 400])
      },
    )

    // The body of a request that was answered early is read as the next request (0.CL and its kin).
    describe.each(EARLY)('answered early for %s', (_name, head) => {
      it.each([
        ['of some length', `Content-Length: ${INNER.length}`, INNER],
        ['in chunks', 'Transfer-Encoding: chunked', `${INNER.length.toString(16)}\r\n${INNER}\r\n0\r\n\r\n`],
      ])(
        'H91 a request in a body %s is no request, in one packet or later',
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

    // Lengths kept in too few bits, of a name or a value (CVE-2021-40346 in HAProxy).
    it.each([255, 256, 257, 270, 511, 512, 1024, 4096, 8192])(
      'H92 a name of %i bytes that begins like Content-Length frames nothing',
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
    ])('H93 a length of %s is decimal, and the device is given one spelling of it', async (length, size) => {
      const { device } = front.sidecar
      const before = device.requests.length
      const raw = await front.send(
        `${post(`Content-Length: ${length}`)}${'x'.repeat(size)}${get('Connection: close')}`,
      )
      expect(answersIn(await raw.closed).map(({ status }) => status)).toEqual([200, 200])
      const [upload] = device.requests.slice(before)
      expect(upload?.body).toHaveLength(size)
      expect(upload?.values('Content-Length')).toEqual([String(size)])
    })
  },
  ['http1', 'tls'],
)

describeTransports(
  'Advisories',
  (transport) => {
    describe.each(['strict', 'tolerant'])('to a device that is read in a %s way', (parser) => {
      const front = heldFront(transport, { upstream: { parser }, status_codes: 'http' })

      // HTTP/2 carries in its pseudo-headers what would be several lines in HTTP/1 (H2.X downgrades).
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
      ])('H94 a method of %j is the fault of its sender, not of the device', async (method) => {
        const before = front.sidecar.device.byteCount
        const status = await front.sidecar
          .request({ method, path: '/x', token: front.token })
          .then((answer) => answer.status)
          .catch(() => 400)
        expect(status).toBe(400)
        expect(front.sidecar.device.byteCount).toBe(before)
      })
    })
  },
  ['h2'],
)
