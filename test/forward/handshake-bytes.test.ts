import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { headOf } from '../support/http1-reader.ts'
import { rawConnection } from '../support/raw.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { LITTLE_FORWARDING, NO_FORWARDING, startSidecar, type YamlPart } from '../support/sidecar.ts'

interface Shape {
  readonly name: string
  readonly target?: string
  readonly fields?: readonly string[]
  readonly upstream?: YamlPart
  /** What the device gets of it. */
  readonly received: readonly string[]
}

const BROWSER = [
  'User-Agent: Mozilla/5.0',
  'Origin: http://device',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits',
]
const MIXED = ['sec-websocket-version: 13', 'SEC-WEBSOCKET-KEY: a', 'x-UPPER-lower: b', 'X_Under: c']
const KNOWN = [
  ...['Date: today', 'Expires: never', 'Content-Type: text/plain', 'Max-Forwards: 1'],
  ...['__proto__: 1', 'constructor: 2', 'User-Agent: a', 'If-Match: "b"'],
]
const FORWARDING = [
  'X-Forwarded-For: 127.0.0.1',
  'X-Forwarded-Proto: http',
  'X-Forwarded-Host: x',
  'X-Forwarded-Port: PORT',
  'Via: 1.1 postern',
  'X-Request-Id: ID',
]
const HOST = 'Host: x'

/** Recorded when Postern wrote the handshake itself. Since then repeats stand together, in the letter case of the first one. */
const SHAPES: readonly Shape[] = [
  { name: 'of a browser', fields: BROWSER, received: [HOST, ...BROWSER, ...FORWARDING] },
  { name: 'with names in any case', fields: MIXED, received: [HOST, ...MIXED, ...FORWARDING] },
  {
    name: 'with repeats',
    fields: ['X-A: 1', 'X-B: 2', 'x-a: 3', 'X-A: 4', 'Set-Cookie: c=5', 'X-D: 6', 'Set-Cookie: e=7'],
    received: [
      ...[HOST, 'X-A: 1', 'X-A: 3', 'X-A: 4', 'X-B: 2', 'Set-Cookie: c=5', 'Set-Cookie: e=7', 'X-D: 6'],
      ...FORWARDING,
    ],
  },
  {
    name: 'with a cookie',
    fields: ['cookie: a=1; b=2', 'X-A: 1'],
    received: [HOST, 'cookie: a=1; b=2', 'X-A: 1', ...FORWARDING],
  },
  {
    // RFC 6265 §5.4: a client sends one field, so repeats become one.
    name: 'with two cookies',
    fields: ['Cookie: a=1; b=2', 'X-A: 1', 'cookie: c=3'],
    received: [HOST, 'Cookie: a=1; b=2; c=3', 'X-A: 1', ...FORWARDING],
  },
  {
    name: 'with fields without a value',
    fields: ['X-Empty:', 'X-Blank:   '],
    received: [HOST, 'X-Empty: ', 'X-Blank: ', ...FORWARDING],
  },
  {
    name: 'with 8-bit values',
    fields: ['X-Latin: caf\xe9 \xff', 'X-Tab: a\tb'],
    received: [HOST, 'X-Latin: caf\xe9 \xff', 'X-Tab: a\tb', ...FORWARDING],
  },
  {
    name: 'with a length of 0',
    fields: ['Content-Length: 0', 'X-A: 1'],
    received: [HOST, 'X-A: 1', 'Content-Length: 0', ...FORWARDING],
  },
  { name: 'with names that Node knows', fields: KNOWN, received: [HOST, ...KNOWN, ...FORWARDING] },
  ...['/\\', '//x', '/?', '/a/../b?c=%zz&d?e', '/http://y/z'].map((target) => ({
    ...{ name: `of ${target}`, target, received: [HOST, ...FORWARDING] },
  })),
  {
    name: 'without forwarding fields',
    fields: ['X-Forwarded-For: 192.0.2.1'],
    upstream: { headers: NO_FORWARDING },
    received: [HOST],
  },
  {
    name: 'with few forwarding fields',
    upstream: { headers: LITTLE_FORWARDING },
    received: [HOST, 'X-Forwarded-For: 127.0.0.1', 'X-Request-Id: ID'],
  },
  {
    name: 'with upstream.headers',
    fields: ['X-Key: mine', 'X-A: 1'],
    upstream: { headers: { 'X-Key': 'secret', 'x-other': 'b' } },
    received: [HOST, 'X-A: 1', ...FORWARDING, 'X-Key: secret', 'x-other: b'],
  },
  {
    name: 'with upstream.host',
    upstream: { host: 'firmware.local' },
    received: ['Host: firmware.local', ...FORWARDING],
  },
]

/** The handshakes as the device got them, without what differs each time. */
async function handshakesOf({ target = '/ws', fields = [], upstream = {} }: Shape): Promise<string[]> {
  const device = await startRawDevice(async (peer) => {
    const signedIn = (await peer.waitFor('\r\n\r\n')).includes('Authorization: Basic')
    const challenge = 'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="device"\r\n'
    peer.end(`${signedIn ? 'HTTP/1.1 200 OK\r\n' : challenge}Content-Length: 0\r\n\r\n`)
  })
  const sidecar = await startSidecar({ device, config: { upstream } })
  const client = await rawConnection(sidecar.url)
  const token = `Authorization: Bearer ${await sidecar.token()}`
  const offer = ['Connection: Upgrade', 'Upgrade: websocket']
  client.write(headOf(`GET ${target} HTTP/1.1`, 'Host: x', token, ...fields, ...offer))
  await client.closed
  const { port } = new URL(sidecar.url)
  return device.peers
    .map(({ received }) => received.replace(`-Port: ${port}`, '-Port: PORT'))
    .map((received) => received.replace(/(X-Request-Id: )[0-9a-f]{32}/, '$1ID'))
    .filter((received) => received.includes('Upgrade'))
}

it.each(SHAPES)('H253 the device gets a handshake $name as its client sent it', async (shape) => {
  const { target = '/ws', received } = shape
  const expected = headOf(`GET ${target} HTTP/1.1`, ...received, 'Connection: Upgrade', 'Upgrade: websocket')
  expect(await handshakesOf(shape)).toEqual([expected])
})

it("H253 the device gets a handshake with the sidecar's own login", async () => {
  const file = join(temporaryDirectory(), 'device-password')
  writeFileSync(file, 'secret')
  const auth = { kind: 'basic', user: 'admin', password: { file } }
  const shape = { name: 'Basic', fields: ['X-A: 1'], upstream: { auth }, received: [] }
  expect(await handshakesOf(shape)).toEqual([
    headOf(
      'GET /ws HTTP/1.1',
      ...[HOST, 'X-A: 1', ...FORWARDING, 'Authorization: Basic YWRtaW46c2VjcmV0'],
      ...['Connection: Upgrade', 'Upgrade: websocket'],
    ),
  ])
})
