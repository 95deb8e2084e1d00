import { beforeAll, expect, it } from 'vitest'
import { rawConnection } from '../support/raw.ts'
import { PASSWORD_GRANT, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'

describeProtocols('C1 The token path', (transport) => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  it('C1 the sidecar answers /oauth/token itself, and no byte of it reaches the device', async () => {
    const alone = await startSidecar({ transport })
    expect((await alone.postToken(PASSWORD_GRANT)).status).toBe(200)
    expect((await alone.postToken('grant_type=password&password=wrong')).status).toBe(400)
    expect((await alone.request({ method: 'GET', path: '/oauth/token' })).status).toBe(400)
    expect(alone.device.byteCount).toBe(0)
  })

  it('C1 a live bearer token does not carry a request for /oauth/token through to the device', async () => {
    const alone = await startSidecar({ transport })
    const token = await alone.token()
    expect((await alone.postToken(PASSWORD_GRANT, { token })).status).toBe(200)
    expect((await alone.request({ method: 'GET', path: '/oauth/token', token })).status).toBe(400)
    expect(alone.device.byteCount).toBe(0)
  })

  it('C1 no query changes the routing', async () => {
    for (const query of ['?', '?x=1', '?a=/&b=?', '?%zz'])
      expect((await sidecar.postToken(PASSWORD_GRANT, { path: `/oauth/token${query}` })).status).toBe(200)
  })

  it('C1 grant parameters in the query are never read', async () => {
    const path = `/oauth/token?${PASSWORD_GRANT}`
    const empty = await sidecar.postToken('x=1', { path })
    expect([empty.status, empty.json().error]).toEqual([400, 'invalid_request'])
    const wrong = await sidecar.postToken('grant_type=password&password=wrong', { path })
    expect([wrong.status, wrong.json().error]).toEqual([400, 'invalid_grant'])
    const body = await sidecar.postToken(PASSWORD_GRANT, {
      path: '/oauth/token?grant_type=x&password=wrong&password=y',
    })
    expect(body.status).toBe(200)
  })

  /** `gate/heads.txt` has many more. */
  const lookalikes = [
    ...[
      '/oauth/token/',
      '//oauth/token',
      '/oauth/%74oken',
      '/oauth%2Ftoken',
      '/oauth/token%00',
      '/oauth/token;x=1',
    ],
    ...['/OAUTH/TOKEN', '/oauth/x/../token', '/oauth\\token', '/x?/../oauth/token', '/oauth/tok%65n%zz', '/'],
  ]

  it('C1 H24 every look-alike path needs a bearer token', async () => {
    const before = sidecar.device.byteCount
    for (const path of lookalikes) {
      const response = await sidecar.postToken(PASSWORD_GRANT, { path })
      expect([response.status, response.json().error], path).toEqual([401, 'invalid_token'])
    }
    expect(sidecar.device.byteCount).toBe(before)
  })

  it('C1 a POST to a path that can be meant as the token path says where tokens are issued, any other request does not', async () => {
    const rows = [
      ['/oauth/token/', 'POST', 'Tokens are issued at /oauth/token.'],
      ['/OAUTH/TOKEN?x=1', 'POST', 'Tokens are issued at /oauth/token.'],
      ['/oauth/token/', 'GET', 'A bearer token is required.'],
      ['/oauth/tokens', 'POST', 'A bearer token is required.'],
    ] as const
    for (const [path, method, says] of rows) {
      const response = await sidecar.request({ path, method })
      expect([response.status, response.json().error_description]).toEqual([401, says])
      expect(response.header('WWW-Authenticate')).not.toContain('error=')
      const shown = await sidecar.request({ path, method, token: 'stale' })
      const invalid = says.startsWith('Tokens') ? says : 'The access token is not valid.'
      expect([shown.status, shown.json().error_description]).toEqual([401, invalid])
      expect(shown.header('WWW-Authenticate')).toContain('error="invalid_token"')
    }
  })

  it('C1 H24 every look-alike path with a bearer token is forwarded byte for byte', async () => {
    const token = await sidecar.token()
    const before = sidecar.device.requests.length
    for (const path of lookalikes) {
      expect((await sidecar.postToken(PASSWORD_GRANT, { path, token })).text, path).toBe('from the device')
    }
    expect(sidecar.device.requests.slice(before).map((request) => request.target)).toEqual(lookalikes)
  })
})

describeTransports(
  'C1 The token path in HTTP/1',
  (transport) => {
    it('C1 H25 the absolute form of the path is the same path (RFC 9112 §3.2.2), and that of a look-alike is not', async () => {
      const sidecar = await startSidecar({ transport })
      const { host } = new URL(sidecar.url)
      const response = await sidecar.postToken(PASSWORD_GRANT, { path: `http://${host}/oauth/token?x` })
      expect(response.status).toBe(200)
      for (const path of ['/oauth/token/', '//oauth/token'])
        expect((await sidecar.postToken(PASSWORD_GRANT, { path: `http://${host}${path}` })).status).toBe(401)
      expect(sidecar.device.byteCount).toBe(0)
    })

    it('C1 an HTTP/1.0 client gets its response, and then the end of the connection', async () => {
      const sidecar = await startSidecar({ transport })
      const raw = await rawConnection(sidecar.url)
      const type = 'Content-Type: application/x-www-form-urlencoded'
      raw.write(
        `POST /oauth/token HTTP/1.0\r\n${type}\r\nContent-Length: ${PASSWORD_GRANT.length}\r\n\r\n${PASSWORD_GRANT}`,
      )
      expect(await raw.closed).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*"access_token":"[\w-]+"\}$/)
    })

    it('C1 several token requests on one connection are each answered, also behind a refused request', async () => {
      const sidecar = await startSidecar({ transport })
      const raw = await rawConnection(sidecar.url)
      const post = (path: string): string =>
        `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n` +
        `Content-Length: ${PASSWORD_GRANT.length}\r\n\r\n${PASSWORD_GRANT}`
      raw.write(post('/oauth/token') + post('/oauth/token/') + post('/oauth/token'))
      const all = await raw.waitFor(/(?:access_token[\s\S]*?){2}/)
      expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401', 'HTTP/1.1 200'])
    })
  },
  ['http1', 'tls'],
)
