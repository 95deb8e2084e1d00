import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mayPersist, type OutgoingRequest, writeRequestHead } from '../../src/http1/request-writer.ts'

const request = (part: Partial<OutgoingRequest>): OutgoingRequest => ({
  method: 'GET',
  target: '/',
  fields: ['Host', 'device'],
  framing: null,
  ...part,
})

const written = (part: Partial<OutgoingRequest>): string | undefined =>
  writeRequestHead(request(part), 'other', true)

const refused = (part: Partial<OutgoingRequest>): void => expect(written(part)).toBeUndefined()

describe('The head of a request to the device', () => {
  it('C21 C22 has target and fields byte for byte, and asks for the connection to be kept', () => {
    const fields = ['HOST', 'device', 'X-Latin', 'Gr\xfc\xdfe\t"!', 'x-latin', '', 'Content-Length', '3']
    expect(written({ method: 'PUT', target: '/a%2F?\xe4=[|]', fields, framing: 3 })).toBe(
      'PUT /a%2F?\xe4=[|] HTTP/1.1\r\nHOST: device\r\nX-Latin: Gr\xfc\xdfe\t"!\r\nx-latin: \r\nContent-Length: 3\r\n' +
        'Connection: keep-alive\r\n\r\n',
    )
  })

  it('names a host where none was named (RFC 9112 §3.2)', () => {
    expect(written({ fields: ['Accept', '*/*'] })).toBe(
      'GET / HTTP/1.1\r\nHost: other\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n',
    )
  })

  it.each([
    ['GET', null, ''],
    ['DELETE', null, ''],
    ['POST', null, 'Content-Length: 0\r\n'],
    ['POST', 'chunked', 'Transfer-Encoding: chunked\r\n'],
  ] as const)('says of a %s with the framing %s: %j', (method, framing, said) => {
    expect(written({ method, framing })).toBe(
      `${method} / HTTP/1.1\r\nHost: device\r\n${said}Connection: keep-alive\r\n\r\n`,
    )
  })

  it.each([
    ['HEAD', null, false],
    ['GET', 'chunked', false],
    ['DELETE', 3, false],
    ['GET', 0, true],
    ['PUT', 3, true],
  ] as const)(
    'H100 another may follow a %s with the framing %s: %s, as firmware and we could disagree about what follows',
    (method, framing, follows) => {
      expect(mayPersist(request({ method, framing }))).toBe(follows)
    },
  )

  it.each(['\r', '\n', '\r\n', '\0', '\u010a', '\u010d', '\u0100', '\u560a', '\r\nX: y', '\x1f'])(
    'H101 C22 nothing becomes another line, or half of one: %j',
    (forgery) => {
      for (const at of ['', 'a', 'ab', 'abc', 'abcd', 'abcde']) {
        refused({ fields: ['Host', 'device', 'X-A', `${at}${forgery}${at}`] })
        refused({ fields: ['Host', 'device', `${at}${forgery}${at}`, 'y'] })
        refused({ fields: ['Host', `${at}${forgery}`] })
        refused({ fields: ['X', 'y'.repeat(40_000), 'X-A', `${at}${forgery}`] })
        refused({ target: `/${at}${forgery}${at}` })
        refused({ method: `G${at}${forgery}` })
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
  ])('H101 the request line is of three words: %o', (part) => refused(part))

  it('H101 whatever the fields hold, the lines are as many as the fields, or there is no request', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', ' ', '\t', '\r', '\n', '\0', '\xff', '\u010a'),
      maxLength: 9,
    })
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 6 }), (pairs) => {
        const fields = ['Host', 'device', ...pairs.flat()]
        const plain = /^[\t\x20-\x7e\x80-\xff]*$/.test(fields.join(''))
        if (!plain) refused({ fields })
        else expect(written({ fields })?.split('\r\n')).toHaveLength(fields.length / 2 + 4)
      }),
    )
  })
})
