import { expect, it } from 'vitest'
import { CONNECTION } from '../../src/memory/costs.ts'
import { closeLater } from '../support/cleanup.ts'
import { connect as connectTo, send } from '../support/client.ts'
import { passUntil } from '../support/clock.ts'
import { expectError, limitsOf } from '../support/expectations.ts'
import type { Request, Response } from '../support/message.ts'
import { rawConnection } from '../support/raw.ts'
import { accessLines } from '../support/records.ts'
import {
  PASSWORD,
  PASSWORD_GRANT,
  startSidecar,
  type TestSidecar,
  type YamlPart,
} from '../support/sidecar.ts'
import { beginStop, nextAccepted } from '../support/waiting.ts'

/** In place of the pair that other tests share. */
const NAMES = { cert: undefined, key: undefined, names: ['gate.example', '*.wild.example', '2001:db8::7'] }

interface Redirecting {
  readonly sidecar: TestSidecar
  /** The address of the port that leads to https. */
  readonly plain: string
  readonly port: string
  ask(request?: Request): Promise<Response>
}

async function start(config: YamlPart = {}, documentedLimits = false): Promise<Redirecting> {
  const { listen = {}, ...others } = config
  const sidecar = await startSidecar({
    transport: 'tls',
    documentedLimits,
    config: { listen: { redirect: '127.0.0.1:0', tls: NAMES, ...(listen as YamlPart) }, ...others },
  })
  const line = sidecar.logLines().find((each) => each.includes('"listening"')) ?? ''
  const plain: string = JSON.parse(line).redirect
  const ask = (request: Request = {}): Promise<Response> =>
    send({ transport: 'http1', url: plain, ...request })
  return { sidecar, plain, port: new URL(plain).port, ask }
}

function expectLedTo(response: Response, location: string): void {
  expect([response.status, response.header('location')]).toEqual([301, location])
  expect([response.text, response.header('cache-control')]).toEqual(['', 'no-store'])
  expect(response.header('x-request-id')).toMatch(/./)
}

it('H366 a GET and a HEAD are led to the same address over https, byte for byte, and the device sees nothing', async () => {
  const { sidecar, ask } = await start()
  const path = '/a%2Fb//c/../d?x=%zz&y=/oauth/token'
  for (const method of ['GET', 'HEAD']) {
    const response = await ask({ method, path })
    expectLedTo(response, `${sidecar.url}${path}`)
    expect(limitsOf(response).limit).toBe(1_000_000)
  }
  expect(sidecar.device.connections).toBe(0)
  expect(accessLines(sidecar).map(({ status }) => status)).toEqual([301, 301])
})

it.each([
  ['gate.example:PLAIN', 'https://gate.example:SECURE'],
  ['GATE.example:PLAIN', 'https://gate.example:SECURE'],
  ['a.wild.example:PLAIN', 'https://a.wild.example:SECURE'],
  ['[2001:db8::7]:PLAIN', 'https://[2001:db8::7]:SECURE'],
  ['192.0.2.7:PLAIN', 'https://192.0.2.7:SECURE'],
  ['localhost:PLAIN', 'https://localhost:SECURE'],
  // A NAT or a container maps the ports.
  ['gate.example', 'https://gate.example'],
  ['192.0.2.7:81', 'https://192.0.2.7'],
  ['a_b.wild.example', 'https://a_b.wild.example'],
  ['gate%2Eexample', 'https://gate.example'],
  ['[2001:DB8:0::7]', 'https://[2001:db8::7]'],
])('H366 the host of the request is named: %s leads to %s', async (authority, expected) => {
  const { sidecar, port, ask } = await start()
  const response = await ask({ path: '/x', authority: authority.replace('PLAIN', port) })
  expectLedTo(response, `${expected.replace('SECURE', new URL(sidecar.url).port)}/x`)
})

it.each([
  ...['evil.example', 'gate.example.evil.example', 'a.b.wild.example', 'wild.example', 'gate.example.'],
  ...['*.wild.example', '%2a.wild.example', '*', 'a_b', 'gate.example:65536'],
  ...[
    'jo@gate.example',
    'gate.example@evil.example',
    'gate.example:80:80',
    '[gate.example]',
    '[fe80::1%25eth0]',
  ],
  ...['gate.example/evil', 'gate.example\\@evil.example', 'evil.example,gate.example', '', ':80'],
])('H366 no other host is: %s', async (authority) => {
  const { ask } = await start()
  const response = await ask({ authority, fields: ['X-Forwarded-Host', 'gate.example'] })
  expectError(response, 400, 'invalid_request')
  expect(response.header('location')).toBeUndefined()
})

it('H366 no host is no host', async () => {
  const { plain } = await start()
  const peer = await rawConnection(plain)
  peer.write('GET / HTTP/1.0\r\n\r\n')
  expect(await peer.closed).toMatch(/^HTTP\/1\.1 400 (?!.*\nlocation:)/is)
})

it.each<[string, Request]>([
  ['an empty body', { fields: ['Content-Length', '0'] }],
  // A browser sends each cookie without `Secure` by itself.
  ['a cookie', { fields: ['Cookie', 'SID=1'] }],
])('H366 %s is led on', async (_what, request) => {
  const { ask } = await start()
  expectLedTo(await ask({ authority: 'gate.example', ...request }), 'https://gate.example/')
})

const FORM = ['Content-Type', 'application/x-www-form-urlencoded']

it.each<[string, Request]>([
  ['a login', { method: 'POST', path: '/oauth/token', fields: FORM, body: PASSWORD_GRANT }],
  ['a GET of the token endpoint', { path: '/oauth/token?grant_type=password' }],
  ['a revocation', { method: 'POST', path: '/oauth/revoke', fields: FORM, body: 'token=x' }],
  ['a GET of the revocation endpoint', { path: '/oauth/revoke' }],
  ['a token', { fields: ['Authorization', 'Bearer secret'] }],
  ['a password for a proxy', { fields: ['Proxy-Authorization', 'Basic eDp5'] }],
  ['another method', { method: 'DELETE', path: '/x' }],
  ['a POST without a body', { method: 'POST', path: '/x' }],
  ['a body', { method: 'GET', path: '/x', body: 'secret' }],
  ['a body of unknown length', { method: 'GET', path: '/x', body: ['secret'] }],
  [
    'a WebSocket',
    {
      fields: [
        ...['Connection', 'Upgrade', 'Upgrade', 'websocket'],
        ...['Sec-WebSocket-Version', '13', 'Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
      ],
    },
  ],
])('H366 what may hold a secret is refused, and is not to be sent again: %s', async (_what, request) => {
  const { sidecar, ask } = await start({ oauth: { revocation_path: '/oauth/revoke' } })
  const response = await ask(request)
  expectError(response, 400, 'invalid_request')
  expect(response.json().error_description).toContain('https')
  expect(response.header('location')).toBeUndefined()
  expect(sidecar.device.connections).toBe(0)
  expect(await sidecar.metric('postern_tokens_issued_total')).toBe(0)
  expect(sidecar.logLines().join('\n')).not.toContain(PASSWORD)
})

it('H366 C13 C15 each request counts in the window of its client, as on the other port', async () => {
  const { sidecar, ask } = await start({}, true)
  for (let count = 1; count <= 60; count += 1)
    expect(limitsOf(await ask({ authority: '192.0.2.7' })).remaining).toBe(60 - count)
  expectError(await ask(), 429, 'rate_limited')
  expectError(await sidecar.request(), 429, 'rate_limited')
  expect(limitsOf(await ask({ path: '/oauth/token' })).limit).toBe(30)
})

it('H366 C26 the connections of both ports count together, in caps and memory', async () => {
  const { sidecar, plain, ask } = await start({ listen: { max_connections_per_client: 2 } })
  const accepted = nextAccepted(plain)
  const first = await rawConnection(plain)
  await accepted
  expect(await sidecar.metric('postern_memory_bytes', { of: 'connections' })).toBe(CONNECTION)
  const second = await sidecar.connect()
  closeLater(() => second.close())
  await expect(ask()).rejects.toThrow()
  expect(
    await sidecar.metric('postern_connections_refused_total', { reason: 'max_connections_per_client' }),
  ).toBe(1)
  first.end()
  await first.closed
})

it('H366 listen.allow, header_timeout and the bounds of a head hold there', async () => {
  const denied = await start({ listen: { allow: ['192.0.2.1'] } })
  await expect(denied.ask()).rejects.toThrow()
  const { sidecar, plain, ask } = await start()
  expect((await ask({ fields: ['X-Long', 'x'.repeat(17_000)] })).status).toBe(400)
  const accepted = nextAccepted(plain)
  const slow = await rawConnection(plain)
  await accepted
  slow.write('GET / HT')
  await expect
    .poll(() => sidecar.metric('postern_connections', { protocol: 'http/1.1' }), { interval: 1 })
    .toBe(1)
  await sidecar.clock.advance(10_000)
  expect(await slow.closed).toMatch(/^(?:HTTP\/1\.1 400 |$)/)
  const garbage = await rawConnection(plain)
  garbage.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  expect(await garbage.closed).toMatch(/^HTTP\/1\.1 400 /)
})

it('H366 a connection carries several requests, and a stop closes the port', async () => {
  const { sidecar, plain } = await start()
  const connection = await connectTo({ transport: 'http1', url: plain })
  for (const path of ['/a', '/b']) expectLedTo(await connection.send({ path }), `${sidecar.url}${path}`)
  const { stopped } = await beginStop(sidecar, 10_000)
  await sidecar.clock.advance(500)
  await connection.closed
  await passUntil(sidecar.clock, stopped)
  await expect(rawConnection(plain)).rejects.toThrow('ECONNREFUSED')
})

it('H366 C18 a browser gets a page in place of JSON, without a form for the password', async () => {
  const { ask } = await start({ browser: { login: 'on' } })
  const fields = ['Accept', 'text/html', 'Sec-Fetch-Mode', 'navigate', ...FORM]
  const page = await ask({ method: 'POST', path: '/oauth/login', fields, body: 'password=x' })
  expect([page.status, page.header('content-type')]).toEqual([400, 'text/html; charset=utf-8'])
  expect(page.text).not.toContain('<form')
})

it('H366 a reload does not open it', async () => {
  const sidecar = await startSidecar({ transport: 'tls' })
  expect(await sidecar.reload({ listen: { redirect: '127.0.0.1:0' } })).toMatchObject({
    restart: ['listen.redirect'],
  })
})
