import fc from 'fast-check'
import { expect, it } from 'vitest'
import { type BodyFraming, Http1Framing, type Stop } from '../../src/listen/http1-framing.ts'

interface Message {
  readonly head: string
  readonly body: string
  readonly framing: BodyFraming
}

const text = (unit: fc.Arbitrary<string>, minLength = 0) => fc.string({ unit, minLength, maxLength: 8 })
const among = (letters: string) => fc.constantFrom(...letters)

const head = fc
  .record({
    empty: fc.constantFrom('', '', '\r\n'),
    method: text(among("AZaz09!#$%&'*+-.^_`|~"), 1),
    target: text(among('/ab?#\x21\x7e\x80\xff'), 1),
    version: fc.constantFrom('1.0', '1.1'),
    fields: fc.array(text(among('a:\r b\x80')), { maxLength: 4 }),
  })
  .map(({ empty, method, target, version, fields }) => {
    const lines = fields.map((field) => `x${field}\r\n`).join('')
    return `${empty}${method} ${target} HTTP/${version}\r\n${lines}\r\n`
  })

const data = text(among('a\r\n0;'), 1)

const chunk = fc
  .record({
    data,
    zeros: fc.integer({ min: 0, max: 4 }),
    extension: fc.constantFrom('', ';a', ';a="b c"', ';'),
  })
  .map(
    ({ data, zeros, extension }) =>
      `${'0'.repeat(zeros)}${data.length.toString(16)}${extension}\r\n${data}\r\n`,
  )

const chunked = fc
  .record({
    chunks: fc.array(chunk, { maxLength: 4 }),
    trailers: fc.array(fc.constantFrom('A: b\r\n', 'x:\r\n'), { maxLength: 2 }),
  })
  .map(({ chunks, trailers }) => `${chunks.join('')}0\r\n${trailers.join('')}\r\n`)

const message: fc.Arbitrary<Message> = fc.oneof(
  head.map((head) => ({ head, body: '', framing: 0 })),
  fc.tuple(head, data).map(([head, body]) => ({ head, body, framing: body.length })),
  fc.tuple(head, chunked).map(([head, body]) => ({ head, body, framing: 'chunked' as const })),
)

/** Where messages end, when their bytes come cut at these places. */
function ends(messages: readonly Message[], cuts: readonly number[]): number[] {
  const bytes = Buffer.from(messages.map(({ head, body }) => head + body).join(''), 'latin1')
  const places = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  const framing = new Http1Framing()
  const found: number[] = []
  let begun = 0
  let start = 0
  for (const place of places) {
    const piece = bytes.subarray(start, place)
    let at = 0
    while (at < piece.length) {
      const stop: Stop = framing.read(piece.subarray(at))
      expect(stop).not.toBe('fault')
      at += framing.position
      const over = stop === 'message' || (stop === 'head' && framing.body(messages[begun++]?.framing ?? 0))
      if (over) found.push(start + at)
    }
    start = place
  }
  expect(framing.idle).toBe(true)
  return found
}

it('finds the end of every message, however they are cut into packets', () => {
  fc.assert(
    fc.property(
      fc.array(message, { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(), { maxLength: 30 }),
      (messages, cuts) => {
        let end = 0
        const expected = messages.map(({ head, body }) => (end += head.length + body.length))
        expect(ends(messages, cuts)).toEqual(expected)
      },
    ),
    { numRuns: 2000 },
  )
})

it('finds the same fault at the same byte, however the bytes are cut', () => {
  const faults = [
    'GET  / HTTP/1.1\r\n',
    'GET / HTTP/1.2\r\n',
    '\r\n\r\nGET',
    'GET / HTTP/1.1 \r\n',
    'G(T',
    'GET / HTTP/1.1\n',
  ]
  for (const bad of faults) {
    const bytes = Buffer.from(bad)
    const whole = new Http1Framing()
    expect(whole.read(bytes), bad).toBe('fault')
    const single = new Http1Framing()
    expect([...bytes].map((byte) => single.read(Buffer.of(byte))).includes('fault'), bad).toBe(true)
  }
})
