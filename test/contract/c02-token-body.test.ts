import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { expectError } from '../support/errors.ts'
import { encodeForm, PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const secret = encodeURIComponent(PASSWORD)
const good = `grant_type=password&password=${secret}`
const formType = 'application/x-www-form-urlencoded'
const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8')
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

/** A form of exactly so many bytes that would be granted. */
function padded(size: number): string {
  const start = `${good}&pad=`
  return start + 'x'.repeat(size - start.length)
}

const goodTypes = [
  formType,
  'Application/X-WWW-Form-URLEncoded',
  `${formType};charset=UTF-8`,
  `${formType}; charset=utf-8`,
  `${formType} ; Charset="utf-8"`,
]

const badTypes: readonly (readonly [string, readonly string[]])[] = [
  ['none', []],
  ['an empty one', ['']],
  ['application/json', ['application/json']],
  ['multipart/form-data', ['multipart/form-data; boundary=x']],
  ['text/plain', ['text/plain']],
  ['*/*', ['*/*']],
  ['another charset', [`${formType}; charset=ISO-8859-1`]],
  ['UTF-16', [`${formType}; charset=utf-16`]],
  ['two charsets', [`${formType}; charset=utf-8; charset=iso-8859-1`]],
  ['a longer name', [`${formType}2`]],
  ['a shorter name', [formType.slice(0, -1)]],
  ['no semicolon', [`${formType} charset=utf-8`]],
  ['a list', [`${formType}, application/json`]],
  ['two fields', [formType, 'application/json']],
  ['the same field twice', [formType, formType]],
]

const goodBodies: readonly (readonly [string, string | Buffer])[] = [
  ['the two parameters', good],
  ['in the other order', `password=${secret}&grant_type=password`],
  ['unknown parameters', `${good}&x=1&y=&z`],
  ['what a browser sends', encodeForm({ grant_type: 'password', password: PASSWORD })],
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

describeTransports('C2', (transport) => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  it.each(goodTypes)('C2 takes the content type %s', async (type) => {
    const answer = await sidecar.request({ path: '/oauth/token', fields: ['Content-Type', type], body: good })
    expect(answer.status, answer.text).toBe(200)
  })

  it.each(badTypes)('C2 refuses the content type: %s', async (_name, types) => {
    const fields = types.flatMap((type) => ['Content-Type', type])
    expectError(await sidecar.request({ path: '/oauth/token', fields, body: good }), 400, 'invalid_request')
  })

  describe.each([
    ['with a length', (body: string | Buffer) => body],
    ['in pieces of unknown length', (body: string | Buffer) => inPieces(body)],
  ] as const)('%s', (_framing, frame) => {
    const post = (body: string | Buffer) =>
      sidecar.request({
        method: 'POST',
        path: '/oauth/token',
        fields: ['Content-Type', formType],
        body: frame(body),
      })

    it.each(goodBodies)('C2 takes %s', async (_name, body) => {
      const answer = await post(body)
      expect(answer.status, answer.text).toBe(200)
    })

    it.each(badBodies)('C2 refuses %s', async (_name, body) => {
      expectError(await post(body), 400, 'invalid_request')
    })
  })

  it('C2 refuses a missing body', async () => {
    const fields = ['Content-Type', formType]
    expectError(
      await sidecar.request({ method: 'POST', path: '/oauth/token', fields }),
      400,
      'invalid_request',
    )
    expectError(await sidecar.request({ method: 'POST', path: '/oauth/token' }), 400, 'invalid_request')
  })

  it.each([
    ['gzip', gzipSync(good)],
    ['gzip, without being it', good],
    ['identity, gzip', good],
  ])('C2 refuses a body with a content coding: %s', async (coding, body) => {
    const answer = await sidecar.request({
      path: '/oauth/token',
      fields: ['Content-Type', formType, 'Content-Encoding', coding.replace(', without being it', '')],
      body,
    })
    expectError(answer, 400, 'invalid_request')
  })

  it('C2 a character split between two pieces is one character', async () => {
    const [before = '', after = ''] = `grant_type=password&password=${secret}`.split('%C3%A4')
    const body = [before, Buffer.from([0xc3]), Buffer.from([0xa4]), after]
    const answer = await sidecar.request({ path: '/oauth/token', fields: ['Content-Type', formType], body })
    expect(answer.status, answer.text).toBe(200)
  })

  it('C2 an announced length over 8 KiB is refused before the body comes', async () => {
    const connection = await sidecar.connect()
    const exchange = connection.start({
      method: 'POST',
      path: '/oauth/token',
      fields: ['Content-Type', formType, 'Content-Length', '8193'],
      open: true,
    })
    expectError(await exchange.response, 400, 'invalid_request')
  })

  it('C2 an endless body is refused as soon as it is over 8 KiB', async () => {
    const connection = await sidecar.connect()
    const exchange = connection.start({
      method: 'POST',
      path: '/oauth/token',
      fields: ['Content-Type', formType],
      open: true,
    })
    exchange.write(padded(8193))
    expectError(await exchange.response, 400, 'invalid_request')
  })

  it('C2 none of it reached the device', () => {
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
