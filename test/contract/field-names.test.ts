import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { launch } from '../devices/launch.ts'
import { servers } from '../devices/servers.ts'
import { makeSite } from '../devices/site.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { send } from '../support/client.ts'
import { expectError } from '../support/expectations.ts'
import { logInAs, makeNames } from '../support/passwords.ts'
import { NO_FORWARDING, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'

/** The bytes of a field name that are no letter or digit (RFC 9110 §5.6.2). To a CGI program each is a `_`. */
const PUNCTUATION = [..."!#$%&'*+-.^_`|~"]

/** A name in every punctuation but its own, and in two mixtures. */
function twinsOf(name: string): readonly string[] {
  const one = PUNCTUATION.filter((byte) => byte !== '-').map((byte) => name.replaceAll('-', () => byte))
  return [...one, name.replace('-', '.').toUpperCase(), name.replace(/-(?!.*-)/, '~')]
}

describeProtocols('Names that a CGI program cannot tell apart', (transport) => {
  it('H18 a twin of a guarded name is 400, with a token and on a public path without forwarding fields', async () => {
    for (const [path, headers] of [
      ['/', {}],
      ['/open', NO_FORWARDING],
    ] as const) {
      const config = { upstream: { headers }, public_paths: ['/open'] }
      const sidecar = await startSidecar({ transport, config })
      const token = path === '/' ? await sidecar.token() : 'none'
      // `gate/heads.test.ts` has every punctuation.
      for (const name of ['X_Real_IP', 'x.forwarded.for', 'Content~Length', 'HTTP2_Settings'])
        expectError(await sidecar.request({ path, token, fields: [name, '5'] }), 400, 'invalid_request')
      expect(sidecar.device.byteCount).toBe(0)
    }
  })

  it('H202 a twin of a name in `upstream.headers`, with a value or without, is dropped', async () => {
    const headers = {
      ...{ 'X-Remote-User': { client_name: true }, 'X-Device-Key': 'own', 'X_Odd.Key': 'own' },
      ...{ 'X-Secret': null, 'sec-*': null, X_Odd_Drop: null },
    }
    const sidecar = await startSidecar({
      transport,
      config: { upstream: { headers }, public_paths: ['/open'] },
    })
    const token = await sidecar.token()
    const names = ['X-Remote-User', 'X-Device-Key', 'X-Odd-Key', 'X-Secret', 'Sec-Purpose', 'X-Odd-Drop']
    const fields = names.flatMap((name) => [name, ...twinsOf(name)]).flatMap((name) => [name, 'client'])
    for (let at = 0; at < fields.length; at += 40)
      for (const request of [{ token }, { path: '/open' }]) {
        const part = fields.slice(at, at + 40)
        expect((await sidecar.request({ ...request, fields: part })).status).toBe(200)
        const seen = sidecar.device.requests.at(-1) ?? expect.unreachable()
        expect(seen.fields, part[0]).not.toContain('client')
        expect(seen.fields.filter((text) => text === 'own')).toHaveLength(2)
      }
  })

  it('H202 any other name reaches the device byte for byte', async () => {
    const sidecar = await startSidecar({
      transport,
      config: { upstream: { headers: { 'X-Device-Key': 'own', 'X-Secret': null, 'sec-*': null } } },
    })
    const token = await sidecar.token()
    const others = [
      ...PUNCTUATION.map((byte) => `x${byte}other${byte}name`),
      ...['x-device-keys', 'x.device-', 'x-secrets', 'xdevicekey', 'x--device-key', 'sec', '~', 'x.security'],
    ]
    await sidecar.request({ token, fields: others.flatMap((name) => [name, 'kept']) })
    const seen = sidecar.device.requests.at(-1) ?? expect.unreachable()
    const kept = seen.fields.filter((_, at) => at % 2 === 0 && seen.fields[at + 1] === 'kept')
    const written = transport === 'h2' ? kept.map((name) => name.toLowerCase()) : kept
    expect(written).toEqual(others)
  })

  it('H193 an override in any punctuation does not reach the device from a name with `allow`', async () => {
    const names = makeNames({ admin: undefined, reader: 'read' })
    const sidecar = await startSidecar({ transport, config: names.config })
    const token = (await logInAs(sidecar, 'reader')).access_token
    for (const name of ['X-HTTP-Method-Override', 'X-Original-URL']) {
      const fields = [name, ...twinsOf(name)].flatMap((each) => [each, 'DELETE'])
      expect((await sidecar.request({ token, fields })).status).toBe(200)
      expect(sidecar.device.requests.at(-1)?.fields).not.toContain('DELETE')
    }
  })
})

it('H18 H202 a WebSocket handshake is judged by the same names', async () => {
  const sidecar = await startSidecar({ config: { upstream: { headers: { 'X-Device-Key': 'own' } } } })
  const { upgrades } = acceptWebSockets(sidecar.device)
  const token = await sidecar.token()
  expect((await refusedWebSocket(sidecar.url, { token, headers: { 'X.Real.IP': '1' } })).status).toBe(400)
  await openWebSocket(sidecar.url, { token, headers: { 'X!Device~Key': 'client', 'X.Other': 'kept' } })
  expect(upgrades).toHaveLength(1)
  expect(upgrades[0]?.rawHeaders).not.toContain('client')
  expect(upgrades[0]?.headers).toMatchObject({ 'x-device-key': 'own', 'x.other': 'kept' })
})

/** Prints what the server makes of the fields of a request. */
const ENVIRONMENT = `#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n'
env | grep '^HTTP_'
`

function nginxConfig(folder: string, root: string, port: number, fastcgi: string): string {
  const scratch = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${join(folder, name)};`)
    .join(' ')
  return `daemon off; worker_processes 1; pid ${join(folder, 'pid')}; error_log /dev/null; events {}
http {
  ${scratch} access_log off; underscores_in_headers on; ignore_invalid_headers off;
  server {
    listen 127.0.0.1:${port};
    location / {
      fastcgi_pass ${fastcgi};
      fastcgi_param SCRIPT_FILENAME ${root}$fastcgi_script_name;
      fastcgi_param REQUEST_METHOD $request_method;
    }
  }
}`
}

/** nginx with FastCGI, which runs the programs of the site by fcgiwrap. Undefined: one of the two is missing. */
async function startNginx(root: string): Promise<string | undefined> {
  const wrap = await launch('fcgiwrap', (port) => ['-s', `tcp:127.0.0.1:${port}`])
  if (wrap === undefined) return undefined
  const folder = temporaryDirectory()
  const file = join(folder, 'nginx.conf')
  return launch('nginx', (port) => {
    writeFileSync(file, nginxConfig(folder, root, port, new URL(wrap).host))
    return ['-e', '/dev/null', '-c', file]
  })
}

const CGI_SERVERS = [
  ...servers.filter(({ cgi }) => cgi !== 'no').map(({ name, program, start }) => ({ name, program, start })),
  { name: 'nginx with fcgiwrap', program: 'fcgiwrap', start: startNginx },
]

/** Those that turn every punctuation into `_`. The others know fewer bytes, or pass only some fields on. */
const FOLDING: readonly string[] = ['BusyBox httpd', 'lighttpd']

describe.each(CGI_SERVERS)('Behind $name', ({ name, program, start }) => {
  let url: string | undefined
  const sidecars = new Map<Transport, TestSidecar>()
  const path = '/cgi-bin/environment'

  beforeAll(async () => {
    const root = makeSite()
    writeFileSync(join(root, path), ENVIRONMENT, { mode: 0o755 })
    url = await start(root)
    if (url === undefined) return
    const names = makeNames({ admin: undefined, reader: 'read' })
    const upstream = { headers: { ...NO_FORWARDING, 'X-Remote-User': { client_name: true } } }
    const config = { ...names.config, upstream, public_paths: [path] }
    for (const transport of ['http1', 'h2'] as const)
      sidecars.set(transport, await startSidecar({ transport, device: { url }, config }))
  })

  it.each(['http1', 'h2'] as const)(
    'H202 no client names itself, its address or another method to a CGI program, by %s',
    async (transport) => {
      needs(program)
      const sidecar = sidecars.get(transport) ?? expect.unreachable()
      if (FOLDING.includes(name)) {
        const direct = await send({
          transport: 'http1',
          url: url ?? '',
          path,
          fields: ['X.Remote!User', 'forged'],
        })
        expect(direct.text).toContain('HTTP_X_REMOTE_USER=forged')
      }
      const { access_token: token } = await logInAs(sidecar, 'reader')
      const spelled = (names: readonly string[], value: string): readonly string[] =>
        names.flatMap((each) => PUNCTUATION.flatMap((byte) => [each.replaceAll('-', () => byte), value]))
      const forged = spelled(['X-Remote-User', 'X-HTTP-Method-Override', 'X-Original-URL'], 'forged')
      for (const request of [{ path }, { path, token }]) {
        const { status, text } = await sidecar.request({ ...request, fields: [...forged, 'X.Other', 'kept'] })
        expect([status, text]).toEqual([200, expect.not.stringContaining('forged')])
        if (FOLDING.includes(name)) expect(text).toContain('HTTP_X_OTHER=kept')
      }
      for (const byte of PUNCTUATION) {
        const fields = [`X${byte}Real${byte}IP`, 'forged']
        const claim = byte === '-' ? 200 : 400
        const { status, text } = await sidecar.request({ path, fields })
        expect([byte, status, text]).toEqual([byte, claim, expect.not.stringContaining('forged')])
      }
    },
  )
})
