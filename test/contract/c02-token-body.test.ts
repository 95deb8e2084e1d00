import { gzipSync } from 'node:zlib'
import { beforeAll, expect, it } from 'vitest'
import { expectError } from '../support/expectations.ts'
import { headOf } from '../support/http1-reader.ts'
import { FORM_TYPE, PASSWORD, PASSWORD_GRANT, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'
import { SMUGGLED, startFront } from './front.ts'

const secret = encodeURIComponent(PASSWORD)
const good = `grant_type=password&password=${secret}`
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

/** A valid password grant padded to exactly `size` bytes. */
function padded(size: number): string {
  const start = `${good}&pad=`
  return start + 'x'.repeat(size - start.length)
}

type Row = readonly [name: string, body: string | Buffer, fields?: readonly string[]]

/** One row for each reason; `oauth/form-request.test.ts` and `oauth/grants.test.ts` have all types and bodies. */
const ACCEPTED: readonly Row[] = [
  ['what a browser sends', PASSWORD_GRANT],
  ['the parameters in the other order, and unknown ones', `password=${secret}&x=1&y=&z&grant_type=password`],
  [
    'every byte of the password escaped, and a name',
    `%67rant_type=password&password=${Buffer.from(PASSWORD).toString('hex').replace(/../g, '%$&')}`,
  ],
  ['unescaped UTF-8', `grant_type=password&password=${secret.replace('%C3%A4', 'ä')}`],
  ['8 KiB exactly', padded(8192)],
  ['a type with a charset', good, ['Content-Type', `${FORM_TYPE} ; Charset="utf-8"`]],
]

const REFUSED: readonly Row[] = [
  ['an empty body', ''],
  ['no password', 'grant_type=password'],
  ['an empty grant_type', `grant_type=&password=${secret}`],
  ['a repeated password', `${good}&password=${secret}`],
  ['a repeated unknown parameter', `${good}&x=1&x=2`],
  ['a lone percent sign', `${good}&x=%`],
  ['an escaped lone surrogate', `${good}&x=%ed%a0%80`],
  ['a raw character in Latin-1', latin1('grant_type=password&password=n\xe4ive')],
  ['a raw NUL behind the password', `${good}\0`],
  ['a byte more than 8 KiB', padded(8193)],
  ['a great deal more than 8 KiB', padded(300_000)],
  ['no Content-Type', good, []],
  ['JSON as its type', good, ['Content-Type', 'application/json']],
  ['two Content-Type fields', good, ['Content-Type', FORM_TYPE, 'Content-Type', FORM_TYPE]],
  ['another charset', good, ['Content-Type', `${FORM_TYPE}; charset=UTF-16`]],
  ['bytes that are not ASCII, as ISO-8859-1', good, ['Content-Type', `${FORM_TYPE}; charset=ISO-8859-1`]],
  ['gzip', gzipSync(good), ['Content-Type', FORM_TYPE, 'Content-Encoding', 'gzip']],
]

describeProtocols('C2 The body of a token request', (transport) => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  /** Posts a body with its length, and in pieces without it. */
  async function* posted([, body, fields = ['Content-Type', FORM_TYPE]]: Row) {
    for (const each of [body, inPieces(body)])
      yield await sidecar.request({ method: 'POST', path: '/oauth/token', fields, body: each })
  }

  it.each(ACCEPTED.map((row) => [row[0], row] as const))('C2 a body is accepted: %s', async (_name, row) => {
    for await (const response of posted(row)) expect(response.status, response.text).toBe(200)
  })

  it.each(REFUSED.map((row) => [row[0], row] as const))(
    'C2 H28 H31 a body is refused: %s',
    async (_name, row) => {
      for await (const response of posted(row)) expectError(response, 400, 'invalid_request')
    },
  )

  it('C2 a form that is ASCII is taken under the label of another charset', async () => {
    const plain = await startSidecar({ transport, password: 'plain & simple' })
    const response = await plain.request({
      path: '/oauth/token',
      fields: ['Content-Type', `${FORM_TYPE}; charset="ISO-8859-1"`],
      body: 'grant_type=password&password=plain+%26%20simple',
    })
    expect(response.status, response.text).toBe(200)
  })

  it('C2 a missing body is refused', async () => {
    for (const fields of [['Content-Type', FORM_TYPE], []])
      expectError(
        await sidecar.request({ method: 'POST', path: '/oauth/token', fields }),
        400,
        'invalid_request',
      )
  })

  it('C2 H29 an announced length over 8 KiB is refused before the body comes', async () => {
    for (const length of ['8193', '1000000000']) {
      const connection = await sidecar.connect()
      const fields = ['Content-Type', FORM_TYPE, 'Content-Length', length]
      const exchange = connection.start({ method: 'POST', path: '/oauth/token', fields, open: true })
      expectError(await exchange.response, 400, 'invalid_request')
      connection.close()
    }
  })

  it('C2 H29 a body that grows over 8 KiB is refused at once, and the refusal reaches the client', async () => {
    const connection = await sidecar.connect()
    const fields = ['Content-Type', FORM_TYPE]
    const exchange = connection.start({ method: 'POST', path: '/oauth/token', fields, open: true })
    for (let i = 0; i < 20; i += 1) exchange.write('x'.repeat(1000))
    expectError(await exchange.response, 400, 'invalid_request')
    if (transport !== 'h2') await connection.closed
    connection.close()
  })

  it('C2 no byte of these requests reached the device', () => {
    expect(sidecar.device.byteCount).toBe(0)
  })
})

describeTransports(
  'C2 The body of a token request in HTTP/1',
  (transport) => {
    it('H29 a request behind a body over 8 KiB is not read', async () => {
      const front = await startFront(transport)
      const before = front.sidecar.device.byteCount
      const head = (framing: string) =>
        headOf('POST /oauth/token HTTP/1.1', 'Host: device', `Content-Type: ${FORM_TYPE}`, framing)
      const large = 'x'.repeat(9000)
      for (const bytes of [
        `${head('Content-Length: 9000')}${large}${SMUGGLED}`,
        `${head('Transfer-Encoding: chunked')}${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n${SMUGGLED}`,
      ])
        expect((await front.responsesTo(bytes)).map(({ status }) => status)).toEqual([400])
      expect(front.sidecar.device.byteCount).toBe(before)
      await front.expectNothingLeft()
    })
  },
  ['http1', 'tls'],
)

/** Cuts a body into pieces small enough to split names, values and escapes. */
function inPieces(body: string | Buffer): Buffer[] {
  const bytes = Buffer.from(body)
  const size = Math.max(7, Math.ceil(bytes.length / 40))
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  )
}
