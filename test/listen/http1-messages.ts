import fc from 'fast-check'

export const among = (...texts: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...texts)

export const row = (unit: fc.Arbitrary<string>, maxLength: number, minLength = 0): fc.Arbitrary<string> =>
  fc.array(unit, { minLength, maxLength }).map((parts) => parts.join(''))

/** A well-formed request and its parts. */
export interface Message {
  readonly text: string
  readonly method: string
  readonly target: string
  readonly version: string
  readonly fields: readonly string[]
  readonly body: string
}

const name = row(among(..."AZaz09!#$%&'*+-.^_`|~"), 8, 1).map((text) => `X${text}`)
const value = row(among('v', ' ', '\t', ':', ',', '\x80', '\xff', '"'), 6).map((text) =>
  text.replace(/^[ \t]+|[ \t]+$/g, ''),
)
const blank = among('', ' ', '\t', '  ')

const field = fc.record({ name, value, before: blank, after: blank })

const byte = among('a', '\r', '\n', '0', ';', '\x00', '\xff')
/** Chunk data: the longer ones have a size of two hexadecimal digits. */
const data = fc.oneof(row(byte, 8, 1), row(byte, 40, 17))

const chunk = fc
  .record({
    data,
    zeros: fc.nat(4),
    extension: among('', '', ';a', ';a=b;c', ';a="b \\" c"'),
    upper: fc.boolean(),
  })
  .map(({ data, zeros, extension, upper }) => {
    const size = '0'.repeat(zeros) + data.length.toString(16)
    return { data, text: `${upper ? size.toUpperCase() : size}${extension}\r\n${data}\r\n` }
  })

/** Fields that frame a body, and the body as sent. */
const framedBody: fc.Arbitrary<{
  readonly fields: readonly string[]
  readonly body: string
  readonly text: string
}> = fc.oneof(
  fc.constant({ fields: [], body: '', text: '' }),
  data.map((body) => ({ fields: ['Content-Length', String(body.length)], body, text: body })),
  fc
    .tuple(fc.array(chunk, { maxLength: 4 }), row(among('A: b\r\n', 'x:\r\n'), 2))
    .map(([chunks, trailers]) => ({
      fields: ['transfer-encoding', 'Chunked'],
      body: chunks.map(({ data }) => data).join(''),
      text: `${chunks.map(({ text }) => text).join('')}0\r\n${trailers}\r\n`,
    })),
)

export const message: fc.Arbitrary<Message> = fc
  .record({
    empty: among('', '', '\r\n', '\r\n\r\n', '\r\n'.repeat(8)),
    method: among('GET', 'POST', 'M-SEARCH', 'DELETE'),
    target: row(among('a', '/', '?', '#', '!', '~', '%'), 8).map((rest) => `/${rest}`),
    fields: fc.array(field, { maxLength: 5 }),
    framed: framedBody,
  })
  .map(({ empty, method, target, fields, framed }) => {
    const all = [...fields.flatMap(({ name, value }) => [name, value]), ...framed.fields]
    const lines = [
      ...fields.map(({ name, value, before, after }) => `${name}:${before}${value}${after}\r\n`),
      ...(framed.fields.length > 0 ? [`${framed.fields.join(': ')}\r\n`] : []),
    ]
    const text = `${empty}${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${framed.text}`
    return { text, method, target, version: '1.1', fields: all, body: framed.body }
  })

const anyByte = fc.nat(255).map((code) => String.fromCharCode(code))

export const BODIES: readonly string[] = [
  '',
  '',
  '5\r\nhello\r\n0\r\n\r\n',
  '3;a=b\r\nabc\r\n0\r\nT: x\r\n\r\n',
  'hello',
  'hello, hello',
]

const BLANKS = [',', ', ', ' ', '\t', ' ,']
const ODD = [';', '"', '+', 'x', '\x80', '\xa0', '\x0b', '\x00', '\r', '\r\n ']

/** Framing and connection fields with values made of valid and invalid parts. */
export const ruling: fc.Arbitrary<string> = fc.oneof(
  ...[
    {
      names: ['Transfer-Encoding', 'transfer-encoding'],
      words: ['chunked', 'Chunked', 'gzip', 'chunked\t', ' chunked,'],
    },
    { names: ['Content-Length', 'CONTENT-LENGTH'], words: ['5', '0', '12', '9999999999999999'] },
    { names: ['Connection'], words: ['close', 'keep-alive', 'upgrade', 'x'] },
    { names: ['Upgrade', 'upgrade'], words: ['websocket', 'WebSocket', 'h2c', 'websocket/13'] },
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

/** Heads with arbitrary framing, and bodies that may fit them. */
export const framed: fc.Arbitrary<string> = fc
  .record({
    version: among('1.1', '1.1', '1.0'),
    method: among('GET', 'POST', 'CONNECT'),
    fields: row(ruling, 3),
    body: among(...BODIES),
  })
  .map(({ version, method, fields, body }) => `${method} /x HTTP/${version}\r\n${fields}\r\n${body}`)

/** Request lines of all kinds, with plain fields. */
export const requestLines: fc.Arbitrary<string> = fc
  .record({
    before: among('', '', '', '', '', '\r\n', '\n', ' ', '\r\n\r\n', '\r\r\n', '\r\n'.repeat(9)),
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

/** Fields with arbitrary bytes. */
export const anyFields: fc.Arbitrary<string> = fc
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
