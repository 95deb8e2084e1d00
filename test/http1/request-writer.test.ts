import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isSafe } from '../../src/http/scope.ts'
import {
  mayPersist,
  mayRepeat,
  type OutgoingRequest,
  writeRequestHead,
  writeRequestLines,
} from '../../src/http1/request-writer.ts'

const request = (part: Partial<OutgoingRequest>): OutgoingRequest => ({
  method: 'GET',
  target: '/',
  fields: ['Host', 'device'],
  framing: null,
  ...part,
})

const written = (part: Partial<OutgoingRequest>): string | undefined =>
  writeRequestHead(request(part), 'other', true)

const expectRefused = (part: Partial<OutgoingRequest>): void => expect(written(part)).toBeUndefined()

describe('the head of a request to the device', () => {
  it('C21 C22 carries target and fields byte for byte, and Connection: keep-alive', () => {
    const fields = ['HOST', 'device', 'X-Latin', 'Gr\xfc\xdfe\t"!', 'x-latin', '', 'Content-Length', '3']
    expect(written({ method: 'PUT', target: '/a%2F?\xe4=[|]', fields, framing: 3 })).toBe(
      'PUT /a%2F?\xe4=[|] HTTP/1.1\r\nHOST: device\r\nX-Latin: Gr\xfc\xdfe\t"!\r\nx-latin: \r\nContent-Length: 3\r\n' +
        'Connection: keep-alive\r\n\r\n',
    )
  })

  it('gets a Host field if the request has none (RFC 9112 §3.2)', () => {
    expect(written({ fields: ['Accept', '*/*'] })).toBe(
      'GET / HTTP/1.1\r\nHost: other\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n',
    )
  })

  it.each([
    ['GET', null, ''],
    ['DELETE', null, ''],
    ...['POST', 'PUT', 'PATCH', 'QUERY', 'PROPFIND', 'PROPPATCH'].map(
      (method) => [method, null, 'Content-Length: 0\r\n'] as const,
    ),
    ['POST', 3, ''],
    ['POST', 'chunked', 'Transfer-Encoding: chunked\r\n'],
  ] as const)('frames a %s with the body %s by the line %j', (method, framing, line) => {
    expect(written({ method, framing })).toBe(
      `${method} / HTTP/1.1\r\nHost: device\r\n${line}Connection: keep-alive\r\n\r\n`,
    )
  })

  it.each([
    ['HEAD', null, false],
    ['GET', 'chunked', false],
    ['DELETE', 3, false],
    ['GET', 0, true],
    ['PUT', 3, true],
    ['POST', null, true],
  ] as const)(
    'H100 after a %s with the framing %s the connection persists: %s, because firmware may disagree where the request ends',
    (method, framing, persists) => {
      expect(mayPersist(request({ method, framing }))).toBe(persists)
    },
  )

  it('names the device in its version, and adds no Host to one in any letter case', () => {
    expect(writeRequestHead(request({ fields: ['hOST', 'a', 'Hast', 'b'] }), 'other', false, '1.0')).toBe(
      'GET / HTTP/1.0\r\nhOST: a\r\nHast: b\r\nConnection: close\r\n\r\n',
    )
    expect(written({ fields: ['Hast', 'b'] })).toContain('Host: other\r\n')
  })

  it('C23 asks for a WebSocket, and its connection carries no other request', () => {
    const upgrade = request({ upgrade: true })
    expect(writeRequestHead(upgrade, 'other', false)).toBe(
      'GET / HTTP/1.1\r\nHost: device\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    )
    expect(mayPersist(upgrade)).toBe(false)
  })

  it('is the same from lines that were written before', () => {
    const lines = writeRequestLines(request({}), 'other')
    expect(writeRequestHead({ ...request({ target: '/elsewhere' }), lines }, 'other', true)).toBe(written({}))
  })

  it.each([
    ['GET', null, true],
    ['HEAD', null, true],
    ['OPTIONS', null, true],
    ['OPTIONS', 0, false],
    ['GET', 'chunked', false],
    ['DELETE', null, false],
    ['POST', null, false],
  ] as const)('C24 a %s with the framing %s may be sent again: %s', (method, framing, again) => {
    expect(mayRepeat({ method, framing })).toBe(again)
  })

  it.each(['GET', 'HEAD', 'OPTIONS'])('C24 %s changes nothing at the device', (method) => {
    expect(isSafe(method)).toBe(true)
    expect(isSafe(method.toLowerCase())).toBe(false)
  })

  it.each(['\r', '\n', '\r\n', '\0', '\u010a', '\u010d', '\u0100', '\u560a', '\r\nX: y', '\x1f'])(
    'H101 C22 no method, target, field name or value injects %j into the head',
    (injection) => {
      for (const at of ['', 'a', 'ab', 'abc', 'abcd', 'abcde']) {
        expectRefused({ fields: ['Host', 'device', 'X-A', `${at}${injection}${at}`] })
        expectRefused({ fields: ['Host', 'device', `${at}${injection}${at}`, 'y'] })
        expectRefused({ fields: ['Host', `${at}${injection}`] })
        expectRefused({ fields: ['X', 'y'.repeat(40_000), 'X-A', `${at}${injection}`] })
        expectRefused({ target: `/${at}${injection}${at}` })
        expectRefused({ method: `G${at}${injection}` })
      }
    },
  )

  it.each([
    { target: '/a b' },
    { target: '' },
    { target: '/\t' },
    { method: 'GET /x' },
    { method: '' },
    { method: 'G(T' },
  ])('H101 a request line that would not have three words is refused: %o', (part) => expectRefused(part))

  it('H101 the head has one line per field, or the request is refused', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', ' ', '\t', '\r', '\n', '\0', '\xff', '\u010a'),
      maxLength: 9,
    })
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 6 }), (pairs) => {
        const fields = ['Host', 'device', ...pairs.flat()]
        const plain = /^[\t\x20-\x7e\x80-\xff]*$/.test(fields.join(''))
        if (!plain) expectRefused({ fields })
        else expect(written({ fields })?.split('\r\n')).toHaveLength(fields.length / 2 + 4)
      }),
    )
  })
})
