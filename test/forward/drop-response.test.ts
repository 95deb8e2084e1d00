import { expect, it } from 'vitest'
import { dropResponseProblem, responseKeeps } from '../../src/config/dropped-fields.ts'
import { problemsIn } from '../config/sources.ts'
import { prepareSite } from '../process/serve.ts'
import { startDevice } from '../support/device.ts'
import type { Head } from '../support/message.ts'
import { nextRequest, startScripted } from '../support/scripted.ts'
import { startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'
import { startSharingSite } from './sharing-site.ts'

const DROP = ['server', 'X-Powered-*']
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
  const device = await startScripted(async (peer) => {
    while (!peer.socket.destroyed) peer.write(answer(await nextRequest(peer)))
  })
  const config = { upstream: { drop_response: DROP, ...upstream } }
  const sidecar = await startSidecar({ transport, device, config })
  return { device, sidecar, token: await sidecar.token() }
}

const response = (line: string, ...fields: readonly string[]): string =>
  `HTTP/1.1 ${line}\r\n${[...TELLING, ...KEPT, ...fields].join('\r\n')}\r\n\r\n`

describeProtocols('upstream.drop_response', (transport) => {
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
    const site = await startSharingSite(transport, {}, { drop_response: DROP })
    const asked = [await site.ask(), await site.ask()]
    const { response: held } = await site.waitForHeld(1)
    held.writeHead(200, { Server: 'x', 'X-Powered-By': 'y', Vary: 'Accept' }).end('shared')
    for (const exchange of asked) expectDropped(await exchange.response, ['Vary:'])
    expect(site.held).toHaveLength(1)
  })

  it('H306 the list holds for each service', async () => {
    const telling = () => startDevice((_, answer) => answer.writeHead(200, { Server: 'x', Via: 'y' }).end())
    const [device, other] = [await telling(), await telling()]
    const routes = { '/cam/': { url: other.url } }
    const sidecar = await startSidecar({
      transport,
      device,
      config: { upstream: { drop_response: DROP, routes } },
    })
    const token = await sidecar.token()
    const names = async (path: string) =>
      lower(await sidecar.request({ token, path })).filter((name) => name === 'server' || name === 'via')
    expect([await names('/'), await names('/cam/')]).toEqual([['via'], ['via']])
  })
})

it('H306 leaves them out of the answer to a WebSocket, accepted or refused, whose handshake stays whole', async () => {
  const device = await startDevice()
  const { server } = acceptWebSockets(device)
  server.on('headers', (fields) => fields.push('Server: x', 'X-Powered-By: y', 'X-Kept: z'))
  const drop_response = [...DROP, 'sec-*', 'u*', 'c*']
  const sidecar = await startSidecar({ device, config: { upstream: { drop_response } } })
  const token = await sidecar.token()
  const { socket, response: accepted } = await openWebSocket(sidecar.url, { token })
  socket.close()
  expectDropped({ fields: accepted.rawHeaders }, ['X-Kept:', 'Sec-WebSocket-Accept:', 'Upgrade:'])
  const refusing = await startScripted(async (peer) => {
    await nextRequest(peer)
    peer.end(response('403 Forbidden', 'Content-Length: 0'))
  })
  const other = await startSidecar({ device: refusing, config: { upstream: { drop_response } } })
  const refused = await refusedWebSocket(other.url, { token: await other.token() })
  expect(refused.status).toBe(403)
  expectDropped(refused, ['ETag:', 'X-Power:', 'Servers:'])
})

it('H306 a reload changes the list, also for a response that repeats on its connection', async () => {
  const site = await prepareSite()
  site.device.handle((_, answer) => answer.writeHead(200, { Server: 'x', 'Content-Length': 0 }).end())
  const served = await site.serve()
  const { access_token } = await served.grant()
  const connection = await served.connect()
  const tells = async (): Promise<boolean> =>
    lower(await connection.send({ fields: ['Authorization', `Bearer ${access_token}`] })).includes('server')
  expect([await tells(), await tells()]).toEqual([true, true])
  site.configure({ upstream: { drop_response: ['server'] } })
  await expect.poll(tells).toBe(false)
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

it.each(NEVER)('H307 refuses %s in any case and punctuation, and a pattern leaves it alone', (name) => {
  for (const each of [name, name.toUpperCase(), name.replaceAll('-', '_'), `${name}*`.replace('**', '*')])
    expect([each, dropResponseProblem(each)]).toEqual([
      each,
      expect.stringContaining(`must not name ${each}: `),
    ])
  const whole = name.replace('*', 'key').toLowerCase()
  const start = `${whole[0]}*`
  expect([start, dropResponseProblem(start)]).toEqual([start, undefined])
  expect(responseKeeps([start], [])(whole)).toBe(true)
})

it.each([
  ['a b', 'must be a field name such as server'],
  ['*', 'must be a field name such as server'],
  ['x-*-by', 'must be a field name such as server'],
  ['', 'must be a field name such as server'],
  ['Vary', 'must not name Vary: caches and upstream.share decide by it'],
  ['set-cookie', 'must not name set-cookie: logins need it'],
])('H307 the configuration refuses %j, and says why', (name, why) => {
  const file = `password: {file: x}\nupstream: {url: "http://d", drop_response: [server, "${name}"]}\n`
  expect(problemsIn({ file })).toEqual([expect.stringContaining(`upstream.drop_response.1: ${why}`)])
})

it('H307 the field in which a device gives its token cannot be named, and a pattern leaves it to Postern', () => {
  const auth =
    'auth: {kind: session, session: {login: {path: /l}, token: {header: X-Token}, send: {header: X-Sent}}}'
  const problems = (drop: string) =>
    problemsIn({
      file: `password: {file: x}\nupstream: {url: "http://d", drop_response: [${drop}], ${auth}}\n`,
    })
  expect(problems('x_token')).toEqual([
    expect.stringMatching(
      /upstream\.drop_response\.0: must not name x_token: the device gives its token in it/,
    ),
  ])
  expect(problems('"x-*"')).toEqual([])
  expect(['x-token', 'x-other'].map(responseKeeps(['x-*'], ['X-Token']))).toEqual([true, false])
})
