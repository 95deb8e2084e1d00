import { describe, expect, it } from 'vitest'
import type { ResponseHead } from '../../src/http/exchange.ts'
import {
  latin1Of,
  type RenderedHead,
  type ResponseFacts,
  renderHead,
  renderInterim,
  UnsendableHeadError,
} from '../../src/http1/response-writer.ts'

const FACTS: ResponseFacts = {
  method: 'GET',
  oldClient: false,
  keepAliveFields: 'Connection: keep-alive\r\n',
  date: 'Date: now\r\n',
  own: 'X-Own: 1\r\n',
}

const rendered = (
  head: Partial<ResponseHead>,
  size?: number,
  facts: Partial<ResponseFacts> = {},
): RenderedHead => renderHead({ status: 200, fields: [], ...head }, size, { ...FACTS, ...facts })

const BEGINNING = 'HTTP/1.1 200 OK\r\nX-Own: 1\r\nDate: now\r\n'
const KEPT = 'Connection: keep-alive\r\n'
const CLOSED = 'Connection: close\r\n'

describe('The head of a response', () => {
  it.each<[string, number | undefined, Partial<ResponseFacts>, RenderedHead]>([
    [
      'of known length',
      3,
      {},
      { text: `${BEGINNING}${KEPT}Content-Length: 3\r\n\r\n`, framing: 3, persists: true },
    ],
    [
      'of unknown length',
      undefined,
      {},
      { text: `${BEGINNING}${KEPT}Transfer-Encoding: chunked\r\n\r\n`, framing: 'chunked', persists: true },
    ],
    [
      'before the connection closes',
      0,
      { keepAliveFields: undefined },
      { text: `${BEGINNING}${CLOSED}Content-Length: 0\r\n\r\n`, framing: 0, persists: false },
    ],
    [
      'of known length, to HTTP/1.0',
      3,
      { oldClient: true },
      { text: `${BEGINNING}${KEPT}Content-Length: 3\r\n\r\n`, framing: 3, persists: true },
    ],
    [
      'of unknown length, to HTTP/1.0',
      undefined,
      { oldClient: true },
      { text: `${BEGINNING}${CLOSED}\r\n`, framing: 'close', persists: false },
    ],
    ['to HEAD', 3, { method: 'HEAD' }, { text: `${BEGINNING}${KEPT}\r\n`, framing: 'none', persists: true }],
  ])(
    'C21 C23 %s says where the body ends, and what becomes of the connection',
    (_, size, facts, expected) => {
      expect(rendered({}, size, facts)).toEqual(expected)
    },
  )

  it.each([199, 204, 304])('C21 has no body with the status %i', (status) => {
    expect(rendered({ status }).framing).toBe('none')
  })

  it.each([true, false])(
    'C21 has one length and one date, also the second time; reusable: %s',
    (reusable) => {
      const fields = ['DATE', 'then', 'CONTENT-LENGTH', '7', 'Data', 'x', 'Content-Longth', 'y']
      const head: ResponseHead = { status: 200, fields, reusable }
      const text =
        'HTTP/1.1 200 OK\r\nDATE: then\r\nCONTENT-LENGTH: 7\r\nData: x\r\nContent-Longth: y\r\n' +
        'X-Own: 1\r\nConnection: keep-alive\r\n\r\n'
      for (let i = 0; i < 2; i += 1)
        expect(renderHead(head, undefined, FACTS)).toEqual({ text, framing: 7, persists: true })
    },
  )

  it('C21 has the reason of the device, or the usual one of its status', () => {
    expect(rendered({ status: 404, reason: 'Nicht da' }).text).toMatch(/^HTTP\/1\.1 404 Nicht da\r\n/)
    expect(rendered({ status: 404, reason: '' }).text).toMatch(/^HTTP\/1\.1 404 \r\n/)
    expect(rendered({ status: 404 }).text).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/)
    expect(rendered({ status: 999 }).text).toMatch(/^HTTP\/1\.1 999 unknown\r\n/)
  })

  it.each(['Connection', 'transfer-encoding', 'TRANSFER-ENCODING', '', 'X Y'])(
    'H101 with a field "%s" is refused on every attempt',
    (name) => {
      for (let i = 0; i < 3; i += 1)
        expect(() => rendered({ fields: [name, 'x'] }, 0)).toThrow(UnsendableHeadError)
    },
  )

  it.each<[string, Partial<ResponseHead>]>([
    ['a line end in a value', { fields: ['X-A', 'b\r\nX-B: c'] }],
    ['a character above 0xFF in a value', { fields: ['X-A', '\u010a'] }],
    ['a line end in its reason', { reason: 'OK\nX-B: c' }],
    ['two lengths', { fields: ['Content-Length', '3', 'content-length', '3'] }],
    ['a length that is no number', { fields: ['Content-Length', '3, 3'] }],
    ['the status 99', { status: 99 }],
    ['the status 1000', { status: 1000 }],
    ['no number as its status', { status: Number.NaN }],
  ])('H101 with %s is refused', (_, head) => {
    expect(() => rendered(head)).toThrow(UnsendableHeadError)
  })
})

describe('The head of an interim response', () => {
  it.each([100, 103, 199])('C23 has its fields and no others: %i', (status) => {
    expect(renderInterim(status, ['Link', '</a>'])).toMatch(
      new RegExp(String.raw`^HTTP/1\.1 ${status} [A-Za-z ]+\r\nLink: </a>\r\n\r\n$`),
    )
  })

  it.each([99, 101, 200])('C23 has no status %i', (status) => {
    expect(() => renderInterim(status, [])).toThrow(UnsendableHeadError)
  })
})

it('C18 a text in UTF-8 is one Latin-1 character for each of its bytes', () => {
  expect(latin1Of('plain')).toBe('plain')
  expect(latin1Of('ü€')).toBe('\xc3\xbc\xe2\x82\xac')
})
