import fc from 'fast-check'

export const among = (...texts: readonly string[]): fc.Arbitrary<string> => fc.constantFrom(...texts)

export const row = (unit: fc.Arbitrary<string>, maxLength: number, minLength = 0): fc.Arbitrary<string> =>
  fc.array(unit, { minLength, maxLength }).map((parts) => parts.join(''))

/** A well-formed request, and what is in it. */
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

const field = fc.record({ name, value, before: blank, behind: blank })

const byte = among('a', '\r', '\n', '0', ';', '\x00', '\xff')
/** In hexadecimal the longer ones have two digits. */
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

/** Fields that frame a body, and how it stands on the wire. */
const framed: fc.Arbitrary<{
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
    empty: among('', '', '\r\n'),
    method: among('GET', 'POST', 'M-SEARCH', 'DELETE'),
    target: row(among('a', '/', '?', '#', '!', '~', '%'), 8).map((rest) => `/${rest}`),
    fields: fc.array(field, { maxLength: 5 }),
    framed,
  })
  .map(({ empty, method, target, fields, framed }) => {
    const all = [...fields.flatMap(({ name, value }) => [name, value]), ...framed.fields]
    const lines = [
      ...fields.map(({ name, value, before, behind }) => `${name}:${before}${value}${behind}\r\n`),
      ...(framed.fields.length > 0 ? [`${framed.fields.join(': ')}\r\n`] : []),
    ]
    const text = `${empty}${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${framed.text}`
    return { text, method, target, version: '1.1', fields: all, body: framed.body }
  })
