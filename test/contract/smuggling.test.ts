import { expect, it } from 'vitest'
import { headOf, responsesIn } from '../support/http1-reader.ts'
import { describeTransports } from '../support/transports.ts'
import { get, post, SMUGGLED, sharedFront, startFront } from './front.ts'

const chunked = (...lines: readonly string[]): string => post('Transfer-Encoding: chunked') + lines.join('')
const LAST = '0\r\n\r\n'
const CHUNKS = `5\r\nhello\r\n${LAST}`

/** One request for each part that refuses one: `http1/fates/` has all the bytes. */
const REFUSED: readonly (readonly [name: string, bytes: string])[] = [
  ['H1 a length, then chunks', post('Content-Length: 5', 'Transfer-Encoding: chunked') + CHUNKS],
  ['H2 an empty coding', post('Transfer-Encoding: ,chunked') + CHUNKS],
  ['H3 gzip and chunked', post('Transfer-Encoding: gzip, chunked') + CHUNKS],
  ['H4 an unknown coding', post('Transfer-Encoding: xchunked') + CHUNKS],
  [
    'H4 a tab, with which Node refuses it only behind the head',
    post('Transfer-Encoding: chunked\t') + CHUNKS,
  ],
  ['H5 chunks in HTTP/1.0', chunked(CHUNKS).replace('HTTP/1.1', 'HTTP/1.0')],
  ['H6 two lengths', `${post('Content-Length: 5', 'Content-Length: 6')}hello`],
  ['H6 a length of a thousand digits', `${post(`Content-Length: ${'5'.repeat(1000)}`)}hello`],
  ['H7 a chunk size of 2^64', chunked('10000000000000000\r\nhello\r\n', LAST)],
  ['H8 H89 a head that ends with CR LF CR', `${get().slice(0, -4)}\r\n\r${SMUGGLED}`],
  ['H8 H88 an empty name', get(': b')],
  ['H9 two spaces', get().replace('GET /x', 'GET  /x')],
  ['H9 a method in lower case', get().replace('GET', 'get')],
  ['H9 a request line of 100 KiB', get().replace('GET', 'A'.repeat(100 * 1024))],
  ['H18 a twin of a guarded name', post('Content_Length: 5', 'Content-Length: 0')],
  ['H20 no Host', get().replace('Host: device\r\n', '')],
  ['H20 two Hosts', get('Host: device')],
  ['H20 a malformed Host', get().replace('Host: device', 'Host: u@device')],
  ['H25 a target with another host', get().replace('/x', 'http://other/')],
  ['H25 a target with a fragment', get().replace('/x', '/x#f')],
  ['H83 an LF within an extension', chunked('5;a\nb\r\nhello\r\n', LAST)],
  ['H84 an extension of 64 KiB', chunked(`5;${'a'.repeat(65_536)}\r\nhello\r\n`, LAST)],
  ['H85 two LF behind the data of a chunk', chunked('5\r\nhello\n\n', LAST)],
  ['H86 a request in place of a trailer', chunked('0\r\n', 'GET /smuggled HTTP/1.1\r\n\r\n')],
  ['H87 a NUL in the name of a framing field', post('Content-Length\0: 5', 'Content-Length: 0')],
]

/** A well-formed request that is refused: the request behind it gets its own response. */
const WRONG = headOf('GET /x HTTP/1.1', 'Host: device', 'Authorization: Bearer wrong')

/** A request inside a body: a parser that frames the body otherwise would run it. */
const INNER = headOf('GET /smuggled HTTP/1.1', 'Host: device')

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
]

const FRAMINGS = [
  [`Content-Length: ${INNER.length}`, INNER],
  ['Transfer-Encoding: chunked', `${INNER.length.toString(16)}\r\n${INNER}\r\n0\r\n\r\n`],
] as const

describeTransports(
  'Requests that two parsers could read differently',
  (transport) => {
    const front = sharedFront(transport)

    it.each(REFUSED)('%s: 400 and close, and no byte reaches the device', (_name, bytes) =>
      front.expectRefused(bytes),
    )

    it.each(['GET  /x HTTP/1.1', '\n\nGET /x HTTP/1.1'])(
      'H90 the request line %j is refused when it comes byte by byte and when it comes behind a good request',
      async (line) => {
        const bytes = get().replace('GET /x HTTP/1.1', line)
        await front.expectRefused(bytes, 200)
        expect((await front.responsesTo(get() + bytes + SMUGGLED)).map(({ status }) => status)).toEqual([
          200, 400,
        ])
      },
    )

    it('H10 five hundred requests pipelined behind a refused one never run', async () => {
      const before = front.sidecar.device.byteCount
      const bytes = post('Transfer-Encoding: gzip, chunked') + SMUGGLED.repeat(500)
      expect((await front.responsesTo(bytes)).map(({ status }) => status)).toEqual([400])
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it('H10 a request that comes later on the connection of a refused one never runs', async () => {
      const before = front.sidecar.device.byteCount
      const raw = await front.send(get('Host: other'))
      await raw.waitFor('invalid_request')
      raw.write(SMUGGLED.replace('TOKEN', front.token))
      expect(responsesIn(await raw.closed)).toHaveLength(1)
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it('H10 the requests behind a well-formed one without access get their own responses', async () => {
      const responses = await front.responsesTo(WRONG + get() + get('Connection: close'))
      expect(responses.map(({ status }) => status)).toEqual([401, 200, 200])
    })

    it.each([
      ['TRACE', '/x'],
      ['TRACE', '/oauth/token'],
      ['CONNECT', 'device:80'],
      ['CONNECT', '/x'],
    ])('H14 %s %s is 400, and the request behind it never runs', async (method, target) => {
      const before = front.sidecar.device.byteCount
      const asked = get('Connection: close').replace('GET /x', `${method} ${target}`)
      const [response, ...more] = await front.responsesTo(asked + SMUGGLED)
      expect([response?.status, more.length]).toEqual([400, 0])
      expect(response?.header('Allow')).toContain('POST')
      expect(front.sidecar.device.byteCount).toBe(before)
    })

    it('H14 TRACE and CONNECT are 405 in http mode', async () => {
      const precise = await startFront(transport, { status_codes: 'http' })
      for (const method of ['TRACE', 'CONNECT']) {
        const raw = await precise.send(get('Connection: close').replace('GET', method))
        expect(await raw.closed).toMatch(/^HTTP\/1\.1 405 /)
      }
    })

    // The body of a request with an early response must not be read as the next request (0.CL desync).
    it.each(EARLY)(
      'C12 H91 refused early for %s: a body is not read as a request, in one packet with the head or later',
      async (_name, head) => {
        const before = front.sidecar.device.byteCount
        for (const [framing, body] of FRAMINGS)
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

    it('H84 an upload with long extensions and hardly any data ends with 400, and its end does not reach the device', async () => {
      const { device } = front.sidecar
      const before = device.requests.length
      const bytes = chunked(`1;${'a'.repeat(250)}\r\nx\r\n`.repeat(200), LAST) + SMUGGLED
      expect((await front.responsesTo(bytes)).map(({ status }) => status)).toEqual([400])
      expect(device.requests.slice(before).filter(({ body }) => body !== undefined)).toEqual([])
    })

    it('H84 an upload with a signature in the extension of each chunk is accepted', async () => {
      const chunk = `400;chunk-signature=${'a'.repeat(64)}\r\n${'x'.repeat(1024)}\r\n`
      const raw = await front.send(chunked(chunk.repeat(300), LAST) + get('Connection: close'))
      expect((await raw.closed).match(/HTTP\/1\.1 200/g)).toHaveLength(2)
      expect(front.sidecar.device.requests.at(-2)?.body).toHaveLength(300 * 1024)
    })

    // A parser that keeps the length of a name in too few bits truncates it (CVE-2021-40346 in HAProxy).
    it('H92 a name of 270 bytes that begins with Content-Length does not frame the body, and reaches the device', async () => {
      const { device } = front.sidecar
      const before = device.requests.length
      const name = 'Content-Length'.padEnd(270, '0')
      const bytes = `${post(`${name}: 0`, 'Content-Length: 5')}hello${get('Connection: close')}`
      expect((await front.responsesTo(bytes)).map(({ status }) => status)).toEqual([200, 200])
      expect(device.requests.slice(before).map(({ body }) => body?.toString())).toEqual(['hello', ''])
      expect(device.requests[before]?.values(name)).toEqual(['0'])
    })

    it.each([
      ['0000000012', 12],
      ['00', 0],
    ])('H93 a Content-Length of %s is forwarded without leading zeros', async (length, size) => {
      const { device } = front.sidecar
      const before = device.requests.length
      const bytes = `${post(`Content-Length: ${length}`)}${'x'.repeat(size)}${get('Connection: close')}`
      expect((await front.responsesTo(bytes)).map(({ status }) => status)).toEqual([200, 200])
      const [upload] = device.requests.slice(before)
      expect([upload?.body?.length, upload?.values('Content-Length')]).toEqual([size, [String(size)]])
    })
  },
  ['http1'],
)

describeTransports(
  'Advisories in HTTP/2',
  (transport) => {
    const front = sharedFront(transport, { status_codes: 'http' })

    // A pseudo-header of HTTP/2 can hold a line break, which would be several lines in HTTP/1 (H2.X downgrade).
    // `gate/heads.txt` has more.
    it.each(['GE T', 'GET /smuggled HTTP/1.1\r\nX: y', 'G\xc9T', ':'])(
      'H94 a method of %j is 400 and does not reach the device',
      async (method) => {
        const before = front.sidecar.device.byteCount
        const status = await front.sidecar
          .request({ method, path: '/x', token: front.token })
          .then((response) => response.status)
          .catch(() => 400)
        expect(status).toBe(400)
        expect(front.sidecar.device.byteCount).toBe(before)
      },
    )
  },
  ['h2'],
)
