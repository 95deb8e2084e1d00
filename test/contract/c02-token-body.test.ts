import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { expectError } from '../support/errors.ts'
import { FORM_TYPE, PASSWORD, PASSWORD_GRANT, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

const secret = encodeURIComponent(PASSWORD)
const good = `grant_type=password&password=${secret}`
const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8')
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

/** A valid password grant padded to exactly `size` bytes. */
function padded(size: number): string {
  const start = `${good}&pad=`
  return start + 'x'.repeat(size - start.length)
}

const goodTypes = [
  FORM_TYPE,
  'Application/X-WWW-Form-URLEncoded',
  `${FORM_TYPE};charset=UTF-8`,
  `${FORM_TYPE}; charset=utf-8`,
  `${FORM_TYPE} ; Charset="utf-8"`,
]

/** Labels of charsets that are ASCII for ASCII bytes, as clients and their languages spell them. */
const asciiLabels = [
  ...[
    'ISO-8859-1',
    'iso-8859-1',
    '"ISO-8859-1"',
    'ISO8859-1',
    'ISO8859_1',
    'iso_8859-1',
    'ISO-8859-15',
    'latin1',
    'latin-1',
  ],
  ...[
    'US-ASCII',
    'us-ascii',
    'ASCII',
    'ANSI_X3.4-1968',
    'windows-1252',
    'Windows-1250',
    'windows-1258',
    'Cp1252',
  ],
]

/** A password and its form, before and after percent-decoding ASCII, and two that are not ASCII in any way. */
const plainPassword = 'plain & simple'
const plainForm = `grant_type=password&password=${encodeURIComponent(plainPassword)}`
const notAscii: readonly (readonly [string, string | Buffer])[] = [
  ['escaped UTF-8', good],
  ['escaped ISO-8859-1', 'grant_type=password&password=%E4'],
  ['UTF-8', utf8('grant_type=password&password=ä')],
  ['ISO-8859-1', latin1('grant_type=password&password=ä')],
  ['an escaped byte in a parameter that is ignored', `${plainForm}&x=%a0`],
  ['an escaped byte in a name', `${plainForm}&%ff=`],
]

const badTypes: readonly (readonly [string, readonly string[]])[] = [
  ['no Content-Type', []],
  ['an empty Content-Type', ['']],
  ['application/json', ['application/json']],
  ['multipart/form-data', ['multipart/form-data; boundary=x']],
  ['text/plain', ['text/plain']],
  ['*/*', ['*/*']],
  ...[
    'UTF-7',
    'UTF-16',
    'UTF-16LE',
    'UTF-32',
    'ISO-2022-JP',
    'ISO-8859',
    'EBCDIC-US',
    'IBM037',
    'Shift_JIS',
    'GB18030',
  ].map((label) => [label, [`${FORM_TYPE}; charset=${label}`]] as const),
  ['two charsets', [`${FORM_TYPE}; charset=utf-8; charset=iso-8859-1`]],
  ['a longer subtype', [`${FORM_TYPE}2`]],
  ['a shorter subtype', [FORM_TYPE.slice(0, -1)]],
  ['no semicolon before the charset', [`${FORM_TYPE} charset=utf-8`]],
  ['a list of two types', [`${FORM_TYPE}, application/json`]],
  ['two Content-Type fields', [FORM_TYPE, 'application/json']],
  ['the same field twice', [FORM_TYPE, FORM_TYPE]],
]

const goodBodies: readonly (readonly [string, string | Buffer])[] = [
  ['the two parameters', good],
  ['the two parameters in the other order', `password=${secret}&grant_type=password`],
  ['unknown parameters', `${good}&x=1&y=&z`],
  ['what a browser sends', PASSWORD_GRANT],
  ['lower-case hexadecimal', good.replace(/%../g, (hex) => hex.toLowerCase())],
  [
    'every byte of the password escaped',
    `grant_type=password&password=${utf8(PASSWORD).toString('hex').replace(/../g, '%$&')}`,
  ],
  ['an escaped parameter name', `%67rant_type=p%61ssword&pass%77ord=${secret}`],
  ['unescaped UTF-8', utf8(`grant_type=password&password=${secret.replace('%C3%A4', 'ä')}`)],
  ['8 KiB exactly', padded(8192)],
]

const badBodies: readonly (readonly [string, string | Buffer])[] = [
  ['an empty body', ''],
  ['no grant_type', `password=${secret}`],
  ['an empty grant_type', `grant_type=&password=${secret}`],
  ['a grant_type without a value', `grant_type&password=${secret}`],
  ['no password', 'grant_type=password'],
  ['an empty password', 'grant_type=password&password='],
  ['a password without a value', 'grant_type=password&password'],
  ['a password under another name', `grant_type=password&Password=${secret}`],
  ['no refresh_token', 'grant_type=refresh_token'],
  ['an empty refresh_token', 'grant_type=refresh_token&refresh_token='],
  ['a repeated grant_type', `grant_type=password&${good}`],
  ['another grant_type', `${good}&grant_type=refresh_token`],
  ['a repeated password', `${good}&password=${secret}`],
  ['a second, wrong password', `${good}&password=wrong`],
  ['a second, empty password', `${good}&password=`],
  ['a second password whose name is escaped', `${good}&pass%77ord=${secret}`],
  ['a repeated refresh_token', 'grant_type=refresh_token&refresh_token=a&refresh_token=a'],
  ['a repeated parameter that is ignored', `${good}&client_id=a&client_id=a`],
  ['a repeated unknown parameter', `${good}&x=1&x=2`],
  ['a repeated unknown empty parameter', `${good}&x=&x=`],
  ['a lone percent sign', `${good}&x=%`],
  ['a percent sign at the end of the password', `${good}%`],
  ['one hexadecimal digit', `${good}&x=%2`],
  ['no hexadecimal digits', `${good}&x=%zz`],
  ['no hexadecimal digits in the password', 'grant_type=password&password=%zz'],
  ['no hexadecimal digits in a name', `${good}&%zz=1`],
  ['a non-standard escape', `${good}&x=%u0041`],
  ['an escaped byte that is never UTF-8', `${good}&x=%ff`],
  ['an escaped byte that is never UTF-8, in a name', `${good}&%ff=x`],
  ['an escaped overlong NUL', `${good}&x=%c0%80`],
  ['an escaped overlong slash', `${good}&x=%e0%80%af`],
  ['an escaped lone surrogate', `${good}&x=%ed%a0%80`],
  ['an escaped pair of surrogates', `${good}&x=%ed%a0%bd%ed%b8%80`],
  ['an escaped code point past the last', `${good}&x=%f4%90%80%80`],
  ['an escaped character cut short', `${good}&x=%e2%82`],
  ['a character escaped in Latin-1', 'grant_type=password&password=n%e4ive'],
  ['a raw byte that is never UTF-8', latin1(`${good}&x=\xff`)],
  ['a raw character in Latin-1', latin1('grant_type=password&password=n\xe4ive')],
  ['a raw character cut short', latin1(`${good}&x=\xe2\x82`)],
  ['a raw lone surrogate', latin1(`${good}&x=\xed\xa0\x80`)],
  ['UTF-16', Buffer.from(`\ufeff${good}`, 'utf16le')],
  ['a NUL in the password', 'grant_type=password&password=a%00b'],
  ['a NUL behind the password', `${good}%00`],
  ['a raw NUL behind the password', `${good}\0`],
  ['a raw NUL in an unknown parameter', `${good}&x=\0`],
  ['JSON', JSON.stringify({ grant_type: 'password', password: PASSWORD })],
  ['XML', '<grant_type>password</grant_type>'],
  ['multipart', '--x\r\nContent-Disposition: form-data; name="grant_type"\r\n\r\npassword\r\n--x--\r\n'],
  ['a byte more than 8 KiB', padded(8193)],
  ['a great deal more than 8 KiB', padded(300_000)],
]

describeProtocols('C2 The body of a token request', (transport) => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  it.each(goodTypes)('C2 the content type %s is accepted', async (type) => {
    const response = await sidecar.request({
      path: '/oauth/token',
      fields: ['Content-Type', type],
      body: good,
    })
    expect(response.status, response.text).toBe(200)
  })

  it.each(badTypes)('C2 a bad content type is refused: %s', async (_name, types) => {
    const fields = types.flatMap((type) => ['Content-Type', type])
    const body = plainForm
    expectError(await sidecar.request({ path: '/oauth/token', fields, body }), 400, 'invalid_request')
  })

  it.each(asciiLabels)('C2 a form labelled %s is taken if it is ASCII', async (label) => {
    const plain = await startSidecar({ transport, password: plainPassword })
    const response = await plain.request({
      path: '/oauth/token',
      fields: ['Content-Type', `${FORM_TYPE}; charset=${label}`],
      body: plainForm,
    })
    expect(response.status, response.text).toBe(200)
  })

  it.each(notAscii)('C2 a form that is labelled so and is not ASCII is refused: %s', async (_name, body) => {
    const fields = ['Content-Type', `${FORM_TYPE}; charset="ISO-8859-1"`]
    const response = await sidecar.request({ path: '/oauth/token', fields, body })
    expectError(response, 400, 'invalid_request')
    expect(response.text).toContain('ISO-8859-1')
  })

  describe.each([
    ['with Content-Length', (body: string | Buffer) => body],
    ['in pieces, of unknown length', (body: string | Buffer) => inPieces(body)],
  ] as const)('%s', (_framing, frame) => {
    const post = (body: string | Buffer) =>
      sidecar.request({
        method: 'POST',
        path: '/oauth/token',
        fields: ['Content-Type', FORM_TYPE],
        body: frame(body),
      })

    it.each(goodBodies)('C2 a body is accepted: %s', async (_name, body) => {
      const response = await post(body)
      expect(response.status, response.text).toBe(200)
    })

    it.each(badBodies)('C2 a body is refused: %s', async (_name, body) => {
      expectError(await post(body), 400, 'invalid_request')
    })
  })

  it('C2 a missing body is refused', async () => {
    const fields = ['Content-Type', FORM_TYPE]
    expectError(
      await sidecar.request({ method: 'POST', path: '/oauth/token', fields }),
      400,
      'invalid_request',
    )
    expectError(await sidecar.request({ method: 'POST', path: '/oauth/token' }), 400, 'invalid_request')
  })

  it.each([
    ['gzip', gzipSync(good)],
    ['gzip, but the body is plain text', good],
    ['identity, gzip', good],
  ])('C2 a body with a content coding is refused: %s', async (coding, body) => {
    const response = await sidecar.request({
      path: '/oauth/token',
      fields: [
        'Content-Type',
        FORM_TYPE,
        'Content-Encoding',
        coding.replace(', but the body is plain text', ''),
      ],
      body,
    })
    expectError(response, 400, 'invalid_request')
  })

  it('C2 a character whose bytes arrive in two pieces is read as one character', async () => {
    const [before = '', after = ''] = `grant_type=password&password=${secret}`.split('%C3%A4')
    const body = [before, Buffer.from([0xc3]), Buffer.from([0xa4]), after]
    const response = await sidecar.request({
      path: '/oauth/token',
      fields: ['Content-Type', FORM_TYPE],
      body,
    })
    expect(response.status, response.text).toBe(200)
  })

  it('C2 an announced length over 8 KiB is refused before the body comes', async () => {
    const connection = await sidecar.connect()
    const exchange = connection.start({
      method: 'POST',
      path: '/oauth/token',
      fields: ['Content-Type', FORM_TYPE, 'Content-Length', '8193'],
      open: true,
    })
    expectError(await exchange.response, 400, 'invalid_request')
  })

  it('C2 an endless body is refused as soon as it is over 8 KiB', async () => {
    const connection = await sidecar.connect()
    const exchange = connection.start({
      method: 'POST',
      path: '/oauth/token',
      fields: ['Content-Type', FORM_TYPE],
      open: true,
    })
    exchange.write(padded(8193))
    expectError(await exchange.response, 400, 'invalid_request')
  })

  it('C2 no byte of these requests reached the device', () => {
    expect(sidecar.device.byteCount).toBe(0)
  })
})

/** Cuts a body into pieces small enough to split names, values and escapes. */
function inPieces(body: string | Buffer): Buffer[] {
  const bytes = Buffer.from(body)
  const size = Math.max(7, Math.ceil(bytes.length / 40))
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  )
}
