import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { requestText } from '../fuzz/grammar.ts'
import { mutated } from '../fuzz/mutation.ts'
import { compareWithNode } from '../support/two-readings.ts'
import { among, message, row } from './http1-messages.ts'

const anyByte = fc.nat(255).map((code) => String.fromCharCode(code))

const BODIES = [
  '',
  '',
  '5\r\nhello\r\n0\r\n\r\n',
  '3;a=b\r\nabc\r\n0\r\nT: x\r\n\r\n',
  'hello',
  'hello, hello',
]

const BLANKS = [',', ', ', ' ', '\t', ' ,']
const ODD = [';', '"', '+', 'x', '\x80', '\xa0', '\x0b', '\x00', '\r', '\r\n ']

/** The fields that rule a connection, put together from what their values are made of. */
const ruling = fc.oneof(
  ...[
    {
      names: ['Transfer-Encoding', 'transfer-encoding'],
      words: ['chunked', 'Chunked', 'gzip', 'chunked\t', ' chunked,'],
    },
    { names: ['Content-Length', 'CONTENT-LENGTH'], words: ['5', '0', '12', '9999999999999999'] },
    { names: ['Connection'], words: ['close', 'keep-alive', 'upgrade', 'x'] },
    { names: ['Upgrade', 'upgrade'], words: ['websocket', 'h2c'] },
    { names: ['Expect', 'X'], words: ['100-continue', 'y'] },
  ].map(({ names, words }) =>
    fc
      .tuple(
        among(...names),
        fc.oneof(
          { weight: 4, arbitrary: among(...words) },
          { weight: 3, arbitrary: row(among(...words, ...BLANKS), 4) },
          { weight: 1, arbitrary: row(among(...words, ...BLANKS, ...ODD), 5) },
        ),
      )
      .map(([name, value]) => `${name}: ${value}\r\n`),
  ),
)

const framed = fc
  .record({
    version: among('1.1', '1.1', '1.0'),
    method: among('GET', 'POST', 'CONNECT'),
    fields: row(ruling, 3),
    body: among(...BODIES),
  })
  .map(({ version, method, fields, body }) => `${method} /x HTTP/${version}\r\n${fields}\r\n${body}`)

const lines = fc
  .record({
    before: among('', '', '', '', '', '\r\n', '\n', ' ', '\r\n\r\n'),
    method: fc.oneof(
      { weight: 4, arbitrary: among('GET', 'POST', 'M-SEARCH', 'CONNECT', 'CONNECT', 'SOURCE', 'PRI') },
      row(anyByte, 2),
    ),
    target: fc
      .tuple(
        among('', '/', '/', '*', 'http://', 'http://', 'x://', 'x:', 'http:/'),
        row(
          among(
            ...[
              '/',
              'x',
              'x',
              'x',
              ':',
              '//',
              '@',
              '?',
              '#',
              '[',
              ']',
              '%41',
              '80',
              '-',
              '.',
              '"',
              '\\',
              '^',
              '|',
            ],
            ...['\x7f', '\x80', '\t', ' ', '{', '~', '!', ',', '*'],
          ),
          5,
        ),
      )
      .map((parts) => parts.join('')),
    version: among(
      'HTTP/1.1',
      'HTTP/1.1',
      'HTTP/1.1',
      'HTTP/1.1',
      'HTTP/1.0',
      'HTTP/1.0',
      'HTTP/1.2',
      'HTTP/2.0',
      'RTSP/1.0',
      'http/1.1',
    ),
  })
  .map(({ before, method, target, version }) => `${before}${method} ${target} ${version}\r\nHost: x\r\n\r\n`)

const fields = fc
  .array(
    fc.tuple(
      row(fc.oneof(among('A', '-', '_', '1', '~'), anyByte), 4),
      row(fc.oneof(among(' ', '\t', 'v', '\xe9'), anyByte), 5),
    ),
    {
      maxLength: 4,
    },
  )
  .map((pairs) => `GET / HTTP/1.1\r\n${pairs.map(([name, value]) => `A${name}:${value}\r\n`).join('')}\r\n`)

/** Every one of these must be accepted now and then, or nothing is shown. */
describe('whatever the sidecar takes for a request, Node takes for the same request, and it ends at the same byte', () => {
  it.each([
    ['requests as clients send them, and damaged', mutated(requestText), 2500, 0.2],
    ['requests with bodies', message.map(({ text }) => text), 1000, 0.99],
    ['the same, damaged', mutated(message.map(({ text }) => text)), 1500, 0.3],
    ['fields that frame a message', framed, 2500, 0.1],
    ['these, damaged', mutated(framed), 1500, 0.05],
    ['request lines', lines, 2500, 0.1],
    ['names and values of any byte', fields, 2500, 0.1],
  ])('20 C20 %s', async (_name, texts, numRuns, least) => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        const comparison = await compareWithNode(Buffer.from(text, 'latin1'))
        if (comparison.accepted) accepted += 1
        expect(comparison.disagreements).toEqual([])
      }),
      { numRuns },
    )
    expect(accepted / numRuns).toBeGreaterThan(least)
  })
})
