import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Agent, request } from 'undici'
import { beforeAll, expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { type ErrorCode, expectError } from '../support/expectations.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { needs, run } from '../support/tools.ts'
import { describeTransports } from '../support/transports.ts'
import { sendThenRead, type Upload } from './blocking-client.ts'

const MB = 1_000_000
/** 20 MB is more than all buffers between client and device hold. */
const LARGE = 20
const BODY = Buffer.alloc(LARGE * MB, 'x')
const INVALID_TOKEN = { error: 'invalid_token' }

/** Sends the whole body before it reads. Arguments: URL, megabytes, `length` or `chunked`. */
const PYTHON = `
import http.client, ssl, sys, urllib.parse
url, size, framing = urllib.parse.urlsplit(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if url.scheme == 'https':
    connection = http.client.HTTPSConnection(url.netloc, context=ssl._create_unverified_context())
else:
    connection = http.client.HTTPConnection(url.netloc)
if framing == 'chunked':
    body = (b'x' * 1000000 for _ in range(size))
    connection.request('POST', '/x', body, {'Transfer-Encoding': 'chunked'}, encode_chunked=True)
else:
    connection.request('POST', '/x', b'x' * (size * 1000000))
response = connection.getresponse()
print(response.status, response.read().decode())
`

describeTransports(
  'C12 The refusal of a large upload reaches',
  (transport) => {
    let sidecar: TestSidecar
    beforeAll(async () => {
      sidecar = await startSidecar({ transport })
    })

    it.each([
      ['5', 'length'],
      ['20', 'chunked'],
    ])("C12 Python's http.client: %s MB, %s", async (size, framing) => {
      needs('python3')
      const { stdout, stderr } = await run('python3', ['-c', PYTHON, sidecar.url, size, framing])
      expect(`${stdout}${stderr}`).toMatch(/^401 \{"error":"invalid_token"/)
    })

    it.each(['Expect:', 'Expect: 100-continue', 'Transfer-Encoding: chunked'])(
      'C12 curl, %s',
      async (field) => {
        needs('curl')
        const file = join(temporaryDirectory(), 'upload')
        writeFileSync(file, BODY)
        const args = ['-sSk', '--http1.1', '-H', field, '--data-binary', `@${file}`, '-w', ' %{http_code}']
        const done = await run('curl', [...args, `${sidecar.url}/x`])
        expect([done.code, done.stderr]).toEqual([0, ''])
        expect(done.stdout).toMatch(/^\{"error":"invalid_token".* 401$/)
      },
    )

    it("C12 Node's node:http", async () => {
      const { request: open } = transport === 'tls' ? https : http
      const upload = open(sidecar.url, { method: 'POST', agent: false, rejectUnauthorized: false })
      upload.end(BODY)
      const [response] = (await once(upload, 'response')) as [http.IncomingMessage]
      expect([response.statusCode, JSON.parse(await text(response))]).toMatchObject([401, INVALID_TOKEN])
    })

    it('C12 undici', async () => {
      const dispatcher = new Agent({ allowH2: false, connect: { rejectUnauthorized: false } })
      const response = await request(sidecar.url, { dispatcher, method: 'POST', body: BODY })
      expect([response.statusCode, await response.body.json()]).toMatchObject([401, INVALID_TOKEN])
      await dispatcher.close()
    })
  },
  ['http1', 'tls'],
)

type Refused = [
  status: number,
  code: ErrorCode,
  what: string,
  head: readonly string[],
  upload?: Partial<Upload>,
]

describeTransports(
  'C12 A client that reads nothing before it has sent 20 MB gets',
  (transport) => {
    const UPLOAD = { size: 20 * MB }
    const form = 'Content-Type: application/x-www-form-urlencoded'
    const overBoth: readonly Refused[] = [
      [401, 'invalid_token', 'no token', ['POST /x HTTP/1.1']],
      [401, 'invalid_token', 'no token, in chunks', ['POST /x HTTP/1.1'], { chunked: true }],
      [413, 'invalid_request', 'a large form', ['POST /oauth/token HTTP/1.1', form]],
    ]
    /** Where a refusal is decided does not know of TLS, and how its upload is read has the rows above. */
    const overOne: readonly Refused[] = [
      [400, 'invalid_request', 'a malformed field line', ['POST /x HTTP/1.1', 'no colon']],
      [417, 'invalid_request', 'an unknown expectation', ['POST /x HTTP/1.1', 'Expect: 200-ok']],
      [431, 'invalid_request', 'a large header', ['POST /x HTTP/1.1', `X: ${'x'.repeat(70_000)}`]],
      [
        415,
        'invalid_request',
        'a body that is no form',
        ['POST /oauth/token HTTP/1.1', 'Content-Type: text/plain'],
      ],
    ]
    const rows = transport === 'http1' ? [...overBoth, ...overOne] : overBoth
    it.each(rows)('C12 %i %s: %s', async (status, code, _what, [line = '', ...fields], how = {}) => {
      const sidecar = await startSidecar({ transport, config: { status_codes: 'http' } })
      const head = [line, 'Host: device', ...fields].join('\r\n')
      const response = await sendThenRead(sidecar.url, head, { ...UPLOAD, ...how })
      expectError(response, status, code)
      expect(sidecar.device.byteCount).toBe(0)
    })

    it('C12 429 rate_limited: a request over the limit', async () => {
      const sidecar = await startSidecar({ transport, config: { limits: { api: { requests: 1 } } } })
      await sidecar.request()
      const response = await sendThenRead(sidecar.url, 'POST /x HTTP/1.1\r\nHost: device', UPLOAD)
      expectError(response, 429, 'rate_limited')
    })

    it('C12 503 overloaded: a request past the queue', async () => {
      const device = await startDevice(() => {})
      const config = { status_codes: 'http', upstream: { max_in_flight: 1, queue: { size: 0 } } }
      const sidecar = await startSidecar({ transport, device, config })
      const token = await sidecar.token()
      const first = await sidecar.connect()
      first.start({ fields: ['Authorization', `Bearer ${token}`] }).response.catch(() => {})
      await device.waitForRequests(1)
      const head = `POST /x HTTP/1.1\r\nHost: device\r\nAuthorization: Bearer ${token}`
      const response = await sendThenRead(sidecar.url, head, UPLOAD)
      expectError(response, 503, 'overloaded')
      first.close()
    })

    it("C12 the device's own response, sent before the upload had ended", async () => {
      const device = await startDevice((_request, response) => response.writeHead(413).end('too much'))
      const sidecar = await startSidecar({ transport, device })
      const head = `POST /x HTTP/1.1\r\nHost: device\r\nAuthorization: Bearer ${await sidecar.token()}`
      const response = await sendThenRead(sidecar.url, head, UPLOAD)
      expect([response.status, response.text]).toEqual([413, 'too much'])
    })
  },
  ['http1', 'tls'],
)
