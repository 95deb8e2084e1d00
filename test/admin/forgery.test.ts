import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { rawConnection, sendAndReset } from '../support/raw.ts'
import { loginForm, revocation, startAdmin } from './viewing.ts'

it('H153 a page of another site can neither revoke, sign in or out, nor take up streams', async () => {
  const viewed = await startAdmin()
  const { port } = viewed
  const json = { 'Content-Type': 'application/json' }
  const foreign: Record<string, string>[] = [
    {},
    { Origin: 'http://evil.example' },
    { Origin: 'null' },
    { Origin: `http://127.0.0.1:${port + 1}` },
    { Origin: `http://127.0.0.1:${port}@evil.example` },
    { Origin: `file://127.0.0.1:${port}` },
    { Origin: '' },
    { Origin: viewed.url, 'Sec-Fetch-Site': 'cross-site' },
    { Origin: viewed.url, 'Sec-Fetch-Site': 'same-site' },
    { Origin: 'http://evil.example', 'X-Forwarded-Host': 'evil.example' },
  ]
  for (const headers of foreign) {
    for (const path of ['/page/revoke', '/page/login', '/page/logout']) {
      const reply = await viewed.ask(path, {
        method: 'POST',
        headers: { ...json, ...headers },
        body: '{"all":true}',
      })
      expect([reply.status, JSON.parse(reply.text).error], `${path} ${JSON.stringify(headers)}`).toEqual([
        403,
        'cross_origin',
      ])
    }
  }
  const reads: Record<string, string>[] = [
    { 'Sec-Fetch-Site': 'cross-site' },
    { Origin: 'http://evil.example' },
    { 'Sec-Fetch-Site': 'none', 'Sec-Purpose': 'prefetch' },
    { 'Sec-Fetch-Site': 'none', Purpose: 'prefetch' },
    { 'Sec-Fetch-Site': 'none', Origin: 'https://evil.example' },
    { 'Sec-Fetch-Site': 'none', Origin: 'null' },
    { 'Sec-Purpose': 'prefetch;prerender' },
  ]
  for (const headers of reads) {
    expect((await viewed.ask('/page/requests', { headers })).status).toBe(403)
    expect((await viewed.ask('/page/events', { headers })).status).toBe(403)
    expect((await viewed.ask('/', { headers })).status).toBe(200)
  }
  expect([viewed.revoked, viewed.overview.listeners]).toEqual([[], 0])
})

it('H153 without a password the page is only for requests that name it as this machine, on loopback', async () => {
  const open = await startAdmin({ config: { admin: { hosts: ['ops.example'] } } })
  const status = async (viewed: typeof open, headers: Record<string, string>): Promise<number> =>
    (await viewed.ask('/page/requests', { headers })).status
  for (const Host of ['127.0.0.1:1', 'localhost', 'a.localhost:80', '[::1]', '[::ffff:127.0.0.2]:9'])
    expect(await status(open, { Host }), Host).toBe(200)
  // `ops` could be a name of the router's DNS, `ops.example` one of a proxy.
  for (const Host of ['ops.example', 'ops', 'box', '192.0.2.1', '0.0.0.0', 'localhost.evil', 'xlocalhost'])
    expect(await status(open, { Host }), Host).toBeGreaterThanOrEqual(403)
  const { text } = await open.ask('/', { headers: { Host: 'ops.example' } })
  expect(text).toContain('admin.password_file')
  expect((await open.ask('/metrics', { headers: { Host: 'ops.example' } })).status).toBe(200)
})

it.each([
  [
    'Forwarded',
    'Via',
    'X-Forwarded',
    'X-Forwarded-For',
    'X-Forwarded-Proto',
    'X-Original-Forwarded-For',
    'CDN-Loop',
  ],
  [
    'X-Real-IP',
    'X-Client-IP',
    'X-Cluster-Client-IP',
    'Fastly-Client-IP',
    'CF-Connecting-IP',
    'X-Azure-ClientIP',
  ],
  ['True-Client-IP', 'X-Original-Host', 'X-Envoy-External-Address'],
])('H153 without a password no request of a proxy gets the page: %s, %s, ...', async (...names) => {
  const viewed = await startAdmin()
  for (const name of names)
    expect((await viewed.ask('/', { headers: { [name]: 'x' } })).status, name).toBe(403)
})

it('H153 without a password no request in HTTP/1.0 gets the page, because only proxies send it', async () => {
  const viewed = await startAdmin()
  const statusOf = async (version: string): Promise<string> => {
    const connection = await rawConnection(viewed.url)
    connection.write(`GET / HTTP/${version}\r\nHost: 127.0.0.1:9464\r\nConnection: close\r\n\r\n`)
    return (await connection.closed).slice(9, 12)
  }
  expect([await statusOf('1.1'), await statusOf('1.0')]).toEqual(['200', '403'])
})

it('H153 without a password only a request over the Unix socket can revoke, and the page knows', async () => {
  const onLoopback = await startAdmin()
  const refused = await onLoopback.ask('/page/revoke', revocation(onLoopback.url))
  expect([refused.status, JSON.parse(refused.text)]).toEqual([
    403,
    {
      error: 'password_required',
      error_description: expect.stringMatching(/admin\.password_file.*hash-password/),
    },
  ])
  expect(onLoopback.revoked).toEqual([])
  const onSocket = await startAdmin({ address: `unix:${join(temporaryDirectory(), 'admin.sock')}` })
  expect((await onSocket.ask('/page/revoke', revocation('http://127.0.0.1'))).status).toBe(200)
  expect(onSocket.revoked).toHaveLength(1)
  for (const [viewed, mayRevoke] of [
    [onLoopback, false],
    [onSocket, true],
  ] as const) {
    expect((await (await viewed.stream()).next('start')).data).toMatchObject({ mayRevoke, signedIn: false })
  }
})

it.each([false, true])(
  'H153 a client that resets its connection before accept is not taken for one on a Unix socket; with a password: %s',
  async (password) => {
    const viewed = await startAdmin({ password })
    const send = (path: string, { headers, body }: ReturnType<typeof loginForm>): void => {
      const fields = Object.entries({ ...headers, Host: 'evil.example', Origin: 'http://evil.example' })
      const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
      sendAndReset(
        viewed.url,
        `POST ${path} HTTP/1.1\r\n${head}Content-Length: ${body?.length}\r\n\r\n${body}`,
      )
    }
    await viewed.ask('/')
    send('/page/revoke', revocation(viewed.url))
    send('/page/login', loginForm(viewed.url, 'wrong'))
    // Accepted after both: their requests have been answered, too.
    for (let i = 0; i < 3; i++) await viewed.ask('/page/login', loginForm(viewed.url, 'wrong'))
    expect(viewed.revoked).toEqual([])
    expect(viewed.logged('failed login').map(({ client }) => client)).toEqual(password ? ['127.0.0.1'] : [])
    expect(viewed.logged('Host')).toEqual([])
  },
)

it('H153 the page itself can, also behind a proxy that adds TLS or changes Host', async () => {
  const viewed = await startAdmin({ password: true })
  const Cookie = await viewed.signIn()
  const own: Record<string, string>[] = [
    { Origin: viewed.url },
    { Origin: 'https://ops', Host: 'ops' },
    { Origin: 'https://ops', Host: 'ops:443' },
    { Origin: 'http://OPS', Host: 'ops:80' },
    { Origin: 'https://ops.example', 'Sec-Fetch-Site': 'same-origin' },
    { Origin: 'null', 'Sec-Fetch-Site': 'same-origin' },
  ]
  for (const headers of own) {
    const { headers: type, ...asked } = revocation(viewed.url)
    const reply = await viewed.ask('/page/revoke', {
      ...asked,
      headers: { ...type, Cookie, ...headers },
    })
    expect(reply.status, JSON.stringify(headers)).toBe(200)
  }
  expect(viewed.revoked).toHaveLength(own.length)
})

it('H153 revokes only what JSON names, and says when the shared store does not answer', async () => {
  const viewed = await startAdmin({ password: true })
  const headers = { ...revocation(viewed.url).headers, Cookie: await viewed.signIn() }
  const ask = async (body: string, type = 'application/json'): Promise<number> =>
    (
      await viewed.ask('/page/revoke', {
        method: 'POST',
        headers: { ...headers, 'Content-Type': type },
        body,
      })
    ).status
  expect(await ask('{"all":true}', 'text/plain')).toBe(415)
  expect(await ask('all=true', 'application/x-www-form-urlencoded')).toBe(415)
  for (const body of [
    '',
    '{}',
    '{"all":1}',
    '{"client":"127.0.0.1"}',
    '{"all":true,"grant":"x"}',
    '{"grant":"x"}',
    '[]',
    'null',
  ]) {
    expect(await ask(body), body).toBe(400)
  }
  expect(await ask(`{"grant":"${'x'.repeat(5_000)}"}`)).toBe(413)
  expect(viewed.revoked).toEqual([])
  viewed.revocation = 'unavailable'
  const reply = await viewed.ask('/page/revoke', { ...revocation(viewed.url), headers })
  expect([reply.status, JSON.parse(reply.text).error]).toEqual([503, 'store_unavailable'])
  expect(viewed.logged('tokens revoked')).toEqual([])
})

it('H155 every response of the page forbids frames, foreign scripts and caching', async () => {
  const viewed = await startAdmin({ password: true })
  const Cookie = await viewed.signIn()
  const replies = [
    await viewed.ask('/'),
    await viewed.ask('/', { headers: { Cookie } }),
    await viewed.ask('/page/main.js'),
    await viewed.ask('/page/nothing.js'),
    await viewed.ask('/page/events'),
    await viewed.ask('/page/requests', { headers: { Cookie } }),
    await viewed.ask('/page/login', loginForm(viewed.url, 'wrong')),
    { headers: (await viewed.stream({ headers: { Cookie } })).response.headers },
  ]
  for (const { headers } of replies) {
    expect(headers).toMatchObject({
      'content-security-policy': expect.stringMatching(/^default-src 'none';.*frame-ancestors 'none'$/),
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': expect.stringMatching(/^no-(?:store|cache)$/),
    })
    expect(headers['content-security-policy']).not.toMatch(/unsafe|https?:/)
  }
  const [, , file] = replies
  expect(file?.headers).toMatchObject({ etag: '"abc"', 'cache-control': 'no-cache' })
  const again = await viewed.ask('/page/main.js', { headers: { 'If-None-Match': '"abc"' } })
  expect([again.status, again.text]).toEqual([304, ''])
})

it('H155 serves the files of the page under their exact names, and nothing else', async () => {
  const viewed = await startAdmin()
  const paths = [
    '/page/',
    '/page',
    '/page/__proto__',
    '/page/constructor',
    '/page/../page/main.js',
    '/page/%6dain.js',
    '/page/%2e%2e/main.js',
    '/page//main.js',
    '/page/main.js/',
    '/page/index.html',
    '/page/login.html',
    '/page/..%2fpackage.json',
    '/page/main.js%00',
  ]
  for (const path of paths) expect((await viewed.ask(path)).status, path).toBe(404)
  for (const [method, path, allow] of [
    ['POST', '/', 'GET, HEAD'],
    ['PUT', '/page/main.js', 'GET, HEAD'],
    ['DELETE', '/page/events', 'GET, HEAD'],
    ['GET', '/page/revoke', 'POST'],
    ['GET', '/page/logout', 'POST'],
    ['OPTIONS', '/page/revoke', 'POST'],
  ] as const) {
    const reply = await viewed.ask(path, { method })
    expect([reply.status, reply.headers.allow], path).toEqual([405, allow])
  }
  const head = await viewed.ask('/page/main.js', { method: 'HEAD' })
  expect([head.status, head.headers['content-length'], head.text]).toEqual([200, '10', ''])
})

it('H155 bounds the connections of one address', async () => {
  const viewed = await startAdmin()
  const opened = await Promise.all(Array.from({ length: 150 }, () => rawConnection(viewed.url)))
  let closed = 0
  for (const connection of opened) void connection.closed.then(() => (closed += 1))
  await expect.poll(() => closed).toBe(22)
  opened[0]?.reset()
  await expect.poll(async () => (await viewed.ask('/healthz').catch(() => ({ status: 0 }))).status).toBe(200)
})

it('H155 a login may be short and quick only', async () => {
  const viewed = await startAdmin({ password: true })
  const form = loginForm(viewed.url, 'x'.repeat(5_000))
  expect((await viewed.ask('/page/login', form)).status).toBe(413)
  for (const body of [
    'password=a&password=b',
    'x=1',
    '',
    'password=',
    'password=%ff',
    'password=%',
    'password=a%00',
  ])
    expect((await viewed.ask('/page/login', { ...form, body })).status, body).toBe(400)
  const text = { ...form.headers, 'Content-Type': 'text/plain' }
  expect((await viewed.ask('/page/login', { ...form, headers: text })).status).toBe(415)
  const gone = await rawConnection(viewed.url)
  gone.write(
    `POST /page/login HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\npassw`,
  )
  gone.reset()
  await gone.closed
  expect((await viewed.ask('/healthz')).status).toBe(200)
})
