import fc from 'fast-check'
import { expect, it } from 'vitest'
import { HeadReader } from '../../src/http1/head-reader.ts'
import { requestText } from '../fuzz/grammar.ts'
import { mutated } from '../fuzz/mutation.ts'
import { gistOf, readInPieces } from '../http1/intake.ts'
import { growth, LINEAR } from '../support/lived-time.ts'
import { message } from './http1-messages.ts'

/** The bytes, cut at these places. */
function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end))
}

const bytewise = (bytes: Buffer): Buffer[] => [...bytes].map((byte) => Buffer.of(byte))

it('C21 messages are read correctly however they are cut into packets', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(message, { minLength: 1, maxLength: 4 }),
      fc.array(fc.nat(), { maxLength: 30 }),
      async (messages, cuts) => {
        const bytes = Buffer.from(messages.map(({ text }) => text).join(''), 'latin1')
        const { messages: read, left, fault } = await readInPieces(cut(bytes, cuts))
        expect([left, fault]).toEqual([0, undefined])
        expect(read.map(({ head, body, whole }) => ({ ...head, body, whole }))).toMatchObject(
          messages.map(({ text, ...parts }) => ({ ...parts, whole: true })),
        )
      },
    ),
    { numRuns: 1500 },
  )
})

it('H96 damaged bytes are read the same in one piece, byte by byte or cut anywhere', async () => {
  let faults = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        mutated(
          fc.oneof(
            requestText,
            message.map(({ text }) => text),
          ),
        ),
        { minLength: 1, maxLength: 2 },
      ),
      fc.array(fc.nat(), { maxLength: 6 }),
      async (texts, cuts) => {
        const bytes = Buffer.from(texts.join(''), 'latin1')
        const options = { maxHeaderSize: 700 }
        const whole = await readInPieces([bytes], options)
        if (whole.fault !== undefined) faults += 1
        const expected = gistOf(whole)
        expect(gistOf(await readInPieces(cut(bytes, cuts), options))).toEqual(expected)
        expect(gistOf(await readInPieces(bytewise(bytes), options))).toEqual(expected)
      },
    ),
    { numRuns: 600 },
  )
  expect(faults).toBeGreaterThan(100)
})

it.each([
  'GET  ',
  'GET / HTTP/1.2',
  '\n',
  '\r\r',
  '\r\n'.repeat(8).concat('\r'),
  'GET / HTTP/1.1 ',
  'G(',
  'GET / HTTP/1.1\n',
  'GET /\x7f',
  'GET / HTTP/1.1\r\nA ',
  'GET / HTTP/1.1\r\nA: b\n',
  'GET / HTTP/1.1\r\nA: b\r\n ',
  'GET / HTTP/1.1\r\nA: b\r\n\rx',
])('H96 %j is refused at its last byte, without waiting for more', async (text) => {
  const bytes = Buffer.from(text, 'latin1')
  expect((await readInPieces([bytes.subarray(0, -1)])).fault).toBeUndefined()
  expect((await readInPieces([bytes])).fault).toBe('malformed')
})

it('H22 a head of maxHeaderSize bytes is read, and one byte more is too large, even if the head never ends', async () => {
  const head = `GET / HTTP/1.1\r\nA: ${'b'.repeat(100)}\r\n\r\n`
  const readings = [head.length, head.length - 1].map((maxHeaderSize) =>
    readInPieces([Buffer.from(head)], { maxHeaderSize }),
  )
  expect((await Promise.all(readings)).map(({ fault }) => fault)).toEqual([undefined, 'header-too-large'])
  const endless = await readInPieces([Buffer.from(head.slice(0, 60))], { maxHeaderSize: 59 })
  expect(endless.fault).toBe('header-too-large')
})

it.each([
  ['Content-Length: 3', ['abc', 'x\r\n', '\0\0\0']],
  ['Transfer-Encoding: chunked', ['3\r\nabc\r\n0\r\n\r\n', '0\r\n\r\n', '1\r\nx\r\n2\r\nyz\r\n0\r\n\r\n']],
])('C21 a head that repeats with %s has a body of its own each time', async (framing, bodies) => {
  const head = `POST /upload HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n`
  const texts = bodies.map((body) => head + body)
  const apart = await Promise.all(texts.map((text) => readInPieces([Buffer.from(text, 'latin1')])))
  const together = await readInPieces([Buffer.from(texts.join(''), 'latin1')])
  expect([together.left, together.fault]).toEqual([0, undefined])
  expect(together.messages.map(({ body }) => body)).toEqual(
    apart.flatMap(({ messages }) => messages.map(({ body }) => body)),
  )
  expect(new Set(together.messages.map(({ head: each }) => each)).size).toBe(1)
})

it('H22 a long line that comes byte by byte takes linear time', () => {
  const readSlowly = (size: number): void => {
    const bytes = Buffer.from(`GET / HTTP/1.1\r\nA: ${'b'.repeat(size)}\r\n\r\n`)
    const reader = new HeadReader('requests')
    for (let end = 1; end < bytes.length; end += 1)
      if (reader.read(bytes.subarray(0, end), 0, end) !== 'more') expect.fail()
    expect(reader.read(bytes, 0, bytes.length)).toBe('done')
  }
  readSlowly(1 << 17) // so that V8 has compiled the reader
  expect(growth(1 << 14, readSlowly)).toBeLessThan(LINEAR)
})

it.each(['\0\r\n\r\n', '\n\r\n', '\r\n:\r\n\r\n'])(
  'H96 a fault behind a long value is found: %j',
  (fault) => {
    const bytes = Buffer.from(`GET / HTTP/1.1\r\nA: ${'b'.repeat(5000)}${fault}`)
    const reader = new HeadReader('requests')
    const ends = [...bytes.keys()].map((at) => reader.read(bytes, 0, at + 1))
    expect(ends.slice(0, 5000)).not.toContain('fault')
    expect(ends).toContain('fault')
  },
)
