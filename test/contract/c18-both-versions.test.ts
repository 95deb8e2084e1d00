import http2 from 'node:http2'
import { beforeAll, describe, expect, it } from 'vitest'
import { connect } from '../support/client.ts'
import { stillClock } from '../support/clock.ts'
import { expectError, limitsOf } from '../support/expectations.ts'
import type { Request, Response } from '../support/message.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** HTTP/1.1 and HTTP/2 over TLS, on one port. */
const VERSIONS = ['tls', 'h2'] as const

describe.each(['contract', 'http'] as const)('HTTP/1 and HTTP/2, status_codes: %s', (mode) => {
  const wrongMethod = mode === 'http' ? 405 : 400
  let sidecar: TestSidecar
  let token: string
  beforeAll(async () => {
    sidecar = await startSidecar({ clock: stillClock(), transport: 'h2', config: { status_codes: mode } })
    token = await sidecar.token()
  })

  const counted = (method: string, code: number): Promise<number> =>
    sidecar.metric('postern_requests_total', { method, code: String(code) })

  /** Sends one request over both versions, expects the same refusal from both, and returns the first one. */
  async function refusedAlike(request: Request, status: number, label: string): Promise<Response> {
    const before = { atDevice: sidecar.device.byteCount, counted: await counted(label, status) }
    const responses: Response[] = []
    for (const transport of VERSIONS) {
      const connection = await connect({ transport, url: sidecar.url })
      responses.push(await connection.send({ ...request, fields: ['Authorization', `Bearer ${token}`] }))
      connection.close()
    }
    const [one, other] = responses
    if (one === undefined || other === undefined) throw new Error('a response is missing')
    expectError(one, status, 'invalid_request')
    expect([other.status, other.text, other.header('Allow')]).toEqual([
      one.status,
      one.text,
      one.header('Allow'),
    ])
    const { limit, remaining } = limitsOf(one)
    expect(limitsOf(other)).toMatchObject({ limit, remaining: remaining - 1 })
    await expect.poll(() => counted(label, status)).toBe(before.counted + VERSIONS.length)
    expect(sidecar.device.byteCount).toBe(before.atDevice)
    return one
  }

  // `gate/heads.txt` has more.
  it.each(['FOO', 'head', 'TRACE', 'X'.repeat(2000)])(
    'C18 C19 the method %s is refused alike',
    async (method) => {
      const response = await refusedAlike({ method }, wrongMethod, 'other')
      expect(response.header('Allow')).toBe('GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
      // A parser that takes `head` for HEAD expects no body, another one does: only the close is unambiguous to both.
      expect(response.header('Connection')).toBe('close')
    },
  )

  it('C18 C19 an unknown method at the token endpoint is refused alike', async () => {
    const response = await refusedAlike({ method: 'post', path: '/oauth/token' }, wrongMethod, 'other')
    expect(response.header('Allow')).toBe('POST')
  })

  it('C18 C19 CONNECT is refused alike, although each version encodes it differently', async () => {
    const one = await (await connect({ transport: 'tls', url: sidecar.url })).send({
      method: 'CONNECT',
      path: 'device.example:443',
    })
    expectError(one, wrongMethod, 'invalid_request')
    const session = http2.connect(sidecar.url, { rejectUnauthorized: false })
    const stream = session.request({ ':method': 'CONNECT', ':authority': 'device.example:443' })
    let text = ''
    stream.on('data', (chunk) => {
      text += chunk
    })
    const headers = await new Promise<http2.IncomingHttpHeaders>((resolve) =>
      stream.once('response', resolve),
    )
    await new Promise((resolve) => stream.once('close', resolve))
    session.destroy()
    expect([headers[':status'], headers.allow, text]).toEqual([one.status, one.header('Allow'), one.text])
    expect(Number(headers['x-ratelimit-remaining'])).toBe(limitsOf(one).remaining - 1)
  })

  it.each([
    ['in the path', '/caf\xc3\xa9'],
    ['in the query of the token endpoint', '/oauth/token?\x80'],
  ])('H20 H27 C16 a target with non-ASCII bytes %s is refused alike', async (_name, path) => {
    const { text } = await refusedAlike({ path }, 400, 'GET')
    expect(JSON.parse(text).error_description).toBe(
      'The request target is not ASCII and has to be percent-encoded.',
    )
  })

  it.each([
    ['a fragment', 'GET', '/a#b'],
    ['an asterisk', 'OPTIONS', '*'],
  ])('H27 C16 %s as a target is refused alike', async (_name, method, path) => {
    await refusedAlike({ method, path }, 400, method)
  })

  it.each([
    ['H22 H39 a path', { path: `/${'x'.repeat(20_000)}` }],
    ['H22 H39 a method', { method: 'X'.repeat(20_000) }],
    ['H22 H39 a host', { authority: 'x'.repeat(20_000) }],
  ])('%s over the size cap of a head is refused alike', async (_name, request) => {
    const before = sidecar.device.byteCount
    const responses: Response[] = []
    for (const transport of VERSIONS) {
      const connection = await connect({ transport, url: sidecar.url })
      responses.push(await connection.send(request))
      connection.close()
    }
    for (const response of responses) expectError(response, mode === 'http' ? 431 : 400, 'invalid_request')
    expect(responses[1]?.text).toBe(responses[0]?.text)
    expect(sidecar.device.byteCount).toBe(before)
  })
})
