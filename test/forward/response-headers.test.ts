import { expect, it } from 'vitest'
import { responseChanges, responseHeaderProblem } from '../../src/config/response-header-field.ts'
import { fieldValues } from '../../src/http/fields.ts'
import { prepareSite } from '../process/serve.ts'
import { startDevice } from '../support/device.ts'
import type { Head } from '../support/message.ts'
import { nextRequest, startRawDevice } from '../support/raw-device.ts'
import { startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'
import { startSharingSite } from './sharing-site.ts'

const DROP = { server: null, 'X-Powered-*': null }
/** What no client gets: in any case and punctuation, repeated, and with a value that looks like a field. */
const TELLING = [
  'SERVER: mini_httpd/1.19',
  'server: a: b',
  'X-Powered-By: PHP/5.2',
  'x_powered.by: PHP',
  'X-POWERED-ON: 1',
]
const KEPT = ['Content-Type: text/plain', 'ETag: "1"', 'X-Power: 1', 'Servers: 2', 'X-Observer: 3']

const lower = ({ fields }: Pick<Head, 'fields'>): readonly string[] =>
  fields.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())

function expectDropped(head: Pick<Head, 'fields'>, kept: readonly string[] = KEPT): void {
  const names = lower(head)
  expect(names.filter((name) => /^server$|power.*(?:by|on)/.test(name))).toEqual([])
  expect(names).toEqual(expect.arrayContaining(kept.map((line) => line.split(':')[0]?.toLowerCase())))
}

async function start(transport: Transport, answer: (head: string) => string, upstream: YamlPart = {}) {
  const device = await startRawDevice(async (peer) => {
    while (!peer.socket.destroyed) peer.write(answer(await nextRequest(peer)))
  })
  const config = { upstream: { response_headers: DROP, ...upstream } }
  const sidecar = await startSidecar({ transport, device, config })
  return { device, sidecar, token: await sidecar.token() }
}

const response = (line: string, ...fields: readonly string[]): string =>
  `HTTP/1.1 ${line}\r\n${[...TELLING, ...KEPT, ...fields].join('\r\n')}\r\n\r\n`

describeProtocols('upstream.response_headers', (transport) => {
  it.each(['strict', 'tolerant', 'auto'])(
    'H306 leaves the fields out of every response that has them, and keeps the others as they are (parser: %s)',
    async (parser) => {
      const answers = [
        `${response('200 OK', 'Content-Length: 2')}ok`,
        `${response('200 OK', 'Content-Length: 2')}ok`,
        response('304 Not Modified'),
        `${response('404 Not Found', 'Transfer-Encoding: chunked')}2\r\nno\r\n0\r\nServer: trailer\r\n\r\n`,
        response('500 Error', 'Content-Length: 0', 'Connection: Server, X-Power'),
      ]
      const { sidecar, token } = await start(transport, () => answers.shift() ?? '', { parser })
      for (const [status, kept] of [[200], [200], [304], [404], [500, ['ETag:']]] as const) {
        const found = await sidecar.request({ token })
        expect(found.status).toBe(status)
        expectDropped(found, kept)
        expect(found.trailers).toEqual([])
      }
    },
  )

  it('H306 leaves them out of interim responses, of the answer to HEAD, and of deviations that the tolerant rules read', async () => {
    const { sidecar, token } = await start(transport, (head) =>
      head.startsWith('HEAD')
        ? response('200 OK', 'Content-Length: 2')
        : response('103 Early Hints', 'Link: </a>; rel=preload') +
          'HTTP/1.1 200 OK\nServer : old\nX-Powered-By\t:\n  folded\nServer: again\nContent-Length: 2\n\nok',
    )
    expectDropped(await sidecar.request({ token, method: 'HEAD' }))
    const found = await sidecar.request({ token })
    expect([found.status, found.text, found.informational.length]).toEqual([200, 'ok', 1])
    expectDropped(found, [])
    for (const hint of found.informational) expectDropped(hint, ['Link:'])
  })

  it('H306 leaves them out of a response that several clients share', async () => {
    const site = await startSharingSite(transport, {}, { response_headers: DROP })
    const asked = [await site.ask(), await site.ask()]
    const { response: held } = await site.waitForHeld(1)
    held.writeHead(200, { Server: 'x', 'X-Powered-By': 'y', Vary: 'Accept' }).end('shared')
    for (const exchange of asked) expectDropped(await exchange.response, ['Vary:'])
    expect(site.held).toHaveLength(1)
  })

  it('H306 they hold for each service', async () => {
    const telling = () => startDevice((_, answer) => answer.writeHead(200, { Server: 'x', Via: 'y' }).end())
    const [device, other] = [await telling(), await telling()]
    const routes = { '/cam/': { url: other.url } }
    const sidecar = await startSidecar({
      transport,
      device,
      config: { upstream: { response_headers: { ...DROP, 'X-Set': 'here' }, routes } },
    })
    const token = await sidecar.token()
    const names = async (path: string) =>
      lower(await sidecar.request({ token, path })).filter((name) =>
        ['server', 'via', 'x-set'].includes(name),
      )
    expect([await names('/'), await names('/cam/')]).toEqual([
      ['via', 'x-set'],
      ['via', 'x-set'],
    ])
  })
})

const SET = {
  'Content-Security-Policy': "default-src 'self'",
  'cache-control': 'no-store',
  'X-*': null,
  'X-Kept': 'postern',
}

/** What the device says in place of it, in its own spelling. */
const OTHERS = [
  'content_security.policy: none',
  'Cache-Control: public',
  'CACHE-CONTROL: max-age=9',
  'x-kept: device',
]

function expectSet(head: Pick<Head, 'fields'>): void {
  const found = new Map<string, readonly string[]>()
  for (const [at, name] of lower(head).entries())
    found.set(name, [...(found.get(name) ?? []), head.fields[2 * at + 1] ?? ''])
  expect(found.get('content-security-policy')).toEqual(["default-src 'self'"])
  expect(found.get('cache-control')).toEqual(['no-store'])
  expect(found.get('x-kept')).toEqual(['postern'])
  expect(head.fields.join()).not.toMatch(/content_security|public|max-age|device/)
}

describeProtocols('upstream.response_headers with text', (transport) => {
  it('H306 is on every response of the device, once, in place of its own field', async () => {
    const fields = [...OTHERS, 'ETag: "1"']
    const respond = (line: string, ...more: readonly string[]): string =>
      `HTTP/1.1 ${line}\r\n${[...fields, ...more].join('\r\n')}\r\n\r\n`
    const answers = [
      ...Array.from({ length: 3 }, () => `${respond('200 OK', 'Content-Length: 2')}ok`),
      respond('304 Not Modified'),
      respond('302 Found', 'Location: /x', 'Content-Length: 0'),
      `${respond('404 Not Found', 'Transfer-Encoding: chunked')}2\r\nno\r\n0\r\n\r\n`,
      respond('500 Error', 'Content-Length: 0', 'Connection: Cache-Control'),
      respond('204 No Content'),
      'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    ]
    const { sidecar, token } = await start(transport, () => answers.shift() ?? '', { response_headers: SET })
    for (const status of [200, 200, 200, 304, 302, 404, 500, 204, 200]) {
      const found = await sidecar.request({ token })
      expect(found.status).toBe(status)
      expectSet(found)
    }
  })

  it('H306 is on the answer to HEAD, and on no interim response, which then has no such field', async () => {
    const { sidecar, token } = await start(
      transport,
      (head) =>
        head.startsWith('HEAD')
          ? `HTTP/1.1 200 OK\r\n${OTHERS.join('\r\n')}\r\nContent-Length: 2\r\n\r\n`
          : `HTTP/1.1 103 Early Hints\r\n${OTHERS.join('\r\n')}\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`,
      { response_headers: SET },
    )
    expectSet(await sidecar.request({ token, method: 'HEAD' }))
    const found = await sidecar.request({ token })
    expectSet(found)
    expect(found.informational).toHaveLength(1)
    for (const hint of found.informational) {
      expect(lower(hint)).toContain('link')
      expect(lower(hint).filter((name) => /kept|cache|policy/.test(name))).toEqual([])
    }
  })

  it("H306 is on none of Postern's own responses", async () => {
    const { sidecar } = await start(transport, () => '', { response_headers: SET })
    const refused = await sidecar.request()
    expect(refused.status).toBe(401)
    expect(lower(refused)).not.toContain('x-kept')
    expect(lower(refused)).not.toContain('content-security-policy')
  })

  it('H183 a response is shared by what the device says about caches, not by what clients get', async () => {
    const site = await startSharingSite(
      transport,
      {},
      { response_headers: { 'Cache-Control': 'public', Vary: 'Accept' } },
    )
    for (const own of [{ 'Cache-Control': 'private' }, { Vary: '*' }]) {
      const before = site.held.length
      const asked = [await site.ask(), await site.ask()]
      await site.waitForHeld(before + 1)
      site.held[before]?.response.writeHead(200, own).end('one')
      await site.waitForHeld(before + 2)
      site.held[before + 1]?.response.writeHead(200, own).end('other')
      for (const exchange of asked) {
        const got = await exchange.response
        expect([got.values('cache-control'), got.values('vary')]).toEqual([['public'], ['Accept']])
      }
    }
    const asked = [await site.ask(), await site.ask()]
    await site.waitForHeld(5)
    site.held[4]?.response.end('shared')
    for (const exchange of asked) expect((await exchange.response).values('vary')).toEqual(['Accept'])
    expect(site.held).toHaveLength(5)
  })
})

it('H306 leaves them out of the answer to a WebSocket, accepted or refused, whose handshake stays whole', async () => {
  const device = await startDevice()
  const { server } = acceptWebSockets(device)
  server.on('headers', (fields) => fields.push('Server: x', 'X-Powered-By: y', 'X-Kept: z'))
  const response_headers = { ...DROP, 'sec-*': null, 'u*': null, 'c*': null, 'X-Set': 'here' }
  const sidecar = await startSidecar({ device, config: { upstream: { response_headers } } })
  const token = await sidecar.token()
  const { socket, response: accepted } = await openWebSocket(sidecar.url, { token })
  socket.close()
  expectDropped({ fields: accepted.rawHeaders }, [
    ...['X-Kept:', 'Sec-WebSocket-Accept:', 'Upgrade:', 'X-Set:'],
  ])
  const refusing = await startRawDevice(async (peer) => {
    await nextRequest(peer)
    peer.end(response('403 Forbidden', 'Content-Length: 0'))
  })
  const other = await startSidecar({ device: refusing, config: { upstream: { response_headers } } })
  const refused = await refusedWebSocket(other.url, { token: await other.token() })
  expect(refused.status).toBe(403)
  expectDropped(refused, ['ETag:', 'X-Power:', 'Servers:', 'X-Set:'])
})

it('H306 a reload changes them, also for a response that repeats on its connection', async () => {
  const site = await prepareSite()
  site.device.handle((_, answer) => answer.writeHead(200, { Server: 'x', 'Content-Length': 0 }).end())
  const served = await site.serve()
  const { access_token } = await served.grant()
  const connection = await served.connect()
  const tells = async (): Promise<boolean> =>
    lower(await connection.send({ fields: ['Authorization', `Bearer ${access_token}`] })).includes('server')
  expect([await tells(), await tells()]).toEqual([true, true])
  site.configure({ upstream: { response_headers: { Server: null } } })
  await expect.poll(tells).toBe(false)
  site.configure({ upstream: { response_headers: { Server: 'none of yours' } } })
  await expect.poll(tells).toBe(true)
  const { fields } = await connection.send({ fields: ['Authorization', `Bearer ${access_token}`] })
  expect(fieldValues(fields, 'server')).toEqual(['none of yours'])
})

/** What each clause, program and part of Postern reads, written down apart from the list of the code. */
const NEVER = [
  // RFC 9112 §6, RFC 9110 §7.6.1 and §7.8
  ...[
    'Content-Length',
    'Transfer-Encoding',
    'Connection',
    'Keep-Alive',
    'TE',
    'Trailer',
    'Upgrade',
    'Proxy-Authenticate',
  ],
  // RFC 9110 §8, §15 and §11
  ...[
    'Content-Type',
    'Content-Encoding',
    'Content-Range',
    'Location',
    'Allow',
    'Retry-After',
    'WWW-Authenticate',
  ],
  ...['Authentication-Info', 'Set-Cookie'],
  // RFC 9111, RFC 9110 §15.4.5 and RFC 9213
  ...[
    'Cache-Control',
    'Vary',
    'ETag',
    'Date',
    'Expires',
    'Age',
    'Last-Modified',
    'Content-Location',
    'CDN-Cache-Control',
  ],
  // RFC 6455 and Fetch
  ...['Sec-WebSocket-Accept', 'sec-websocket-*', 'Access-Control-Allow-Origin', 'Content-Security-Policy'],
  ...[
    'X-Content-Type-Options',
    'X-Frame-Options',
    'Content-Disposition',
    'Content-Security-Policy-Report-Only',
  ],
  ...['Document-Policy', 'Integrity-Policy', 'Permissions-Policy', 'Origin-Agent-Cluster'],
  ...['Cross-Origin-Opener-Policy', 'cross-origin-*', 'Clear-Site-Data', 'Referrer-Policy'],
  // What old firmware sets for the browsers of its time, and Adobe's clients
  ...[
    'X-Content-Security-Policy',
    'X-WebKit-CSP',
    'X-XSS-Protection',
    'X-Download-Options',
    'Feature-Policy',
  ],
  ...['X-Permitted-Cross-Domain-Policies'],
  // nginx in front
  ...['X-Accel-Expires'],
  // RFC 4918 §10.5
  ...['Lock-Token'],
  // Postern's own
  ...['X-RateLimit-Limit', 'RateLimit', 'RateLimit-Policy', 'X-Request-Id', 'Proxy-Status'],
]

it.each(NEVER)(
  'H307 refuses null for %s in any case and punctuation, and a pattern leaves it alone',
  (name) => {
    for (const each of [name, name.toUpperCase(), name.replaceAll('-', '_'), `${name}*`.replace('**', '*')])
      expect([each, responseHeaderProblem(each, null)]).toEqual([
        each,
        expect.stringContaining('must not be null: '),
      ])
    const whole = name.replace('*', 'key').toLowerCase()
    const start = `${whole[0]}*`
    expect([start, responseHeaderProblem(start, null)]).toEqual([start, undefined])
    expect(responseChanges({ [start]: null }, []).passes?.(whole)).toBe(true)
  },
)

it('H307 a pattern leaves the field in which a device gives its token to Postern', () => {
  const { passes } = responseChanges({ 'x-*': null }, ['X-Token'])
  expect(['x-token', 'x-other'].map((name) => passes?.(name))).toEqual([true, false])
})
