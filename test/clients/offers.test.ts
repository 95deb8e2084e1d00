import { expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import type { DeviceRequest } from '../support/device.ts'
import { responsesIn } from '../support/http1-reader.ts'
import { rawConnection } from '../support/raw.ts'
import { encodeForm, PASSWORD, startSidecar } from '../support/sidecar.ts'
import { needs, run } from '../support/tools.ts'

const FORM = encodeForm({ grant_type: 'password', password: PASSWORD })

/** Requests of Java 17's `HttpClient` by default (it prefers HTTP/2), in cleartext: head and body in separate packets. */
const java = {
  post: (path: string, form: string, ...fields: string[]): string[] => [
    [
      `POST ${path} HTTP/1.1`,
      'Connection: Upgrade, HTTP2-Settings',
      `Content-Length: ${form.length}`,
      'Host: 127.0.0.1:18999',
      'HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA',
      'Upgrade: h2c',
      'User-Agent: Java-http-client/17.0.15',
      'Content-Type: application/x-www-form-urlencoded',
      ...fields,
      '\r\n',
    ].join('\r\n'),
    form,
  ],
  get: (path: string, ...fields: string[]): string[] => [
    [
      `GET ${path} HTTP/1.1`,
      'Connection: Upgrade, HTTP2-Settings',
      'Content-Length: 0',
      'Host: 127.0.0.1:18999',
      'HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA',
      'Upgrade: h2c',
      'User-Agent: Java-http-client/17.0.15',
      ...fields,
      '\r\n',
    ].join('\r\n'),
  ],
  stream: (path: string, ...fields: string[]): string[] => [
    [
      `POST ${path} HTTP/1.1`,
      'Connection: Upgrade, HTTP2-Settings',
      'Host: 127.0.0.1:18999',
      'HTTP2-Settings: AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA',
      'Transfer-encoding: chunked',
      'Upgrade: h2c',
      'User-Agent: Java-http-client/17.0.15',
      ...fields,
      '\r\n',
    ].join('\r\n'),
    '5\r\nhello\r\n',
    '0\r\n\r\n',
  ],
}

/** A request of Apache HttpClient 5.4 in cleartext. */
const apache = (path: string, ...fields: string[]): string[] => [
  [
    `GET ${path} HTTP/1.1`,
    'Accept-Encoding: gzip, x-gzip, deflate',
    'Host: 127.0.0.1:18999',
    'User-Agent: Apache-HttpClient/5.4 (Java/21.0.2)',
    'Upgrade: TLS/1.2',
    'Connection: Upgrade',
    ...fields,
    '\r\n',
  ].join('\r\n'),
]

function expectNoOffer(requests: readonly DeviceRequest[]): void {
  for (const { fields } of requests)
    expect(fields.join('\n')).not.toMatch(/upgrade|http2-settings|h2c|TLS\//i)
}

it('C23 Java gets a token, calls, uploads and refreshes on one connection; its offers of h2c are ignored', async () => {
  const sidecar = await startSidecar()
  const raw = await rawConnection(sidecar.url)
  let received = ''
  async function ask(packets: readonly string[]): Promise<string> {
    raw.forget()
    for (const packet of packets) {
      raw.write(packet)
      await nextTurn()
    }
    const response = await raw.waitFor(/\r\n\r\n(?:from the device|\{.*\})$/)
    received += response
    return response
  }
  const tokens = JSON.parse((await ask(java.post('/oauth/token', FORM))).split('\r\n\r\n')[1] ?? '')
  const bearer = `Authorization: Bearer ${tokens.access_token}`
  await ask(java.get('/status', bearer))
  await ask(java.stream('/upload', bearer))
  await ask(java.post('/values', 'a=b', bearer))
  await ask(apache('/status', bearer))
  const refresh = encodeForm({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
  await ask(java.post('/oauth/token', refresh))
  expect(responsesIn(received).map(({ status }) => status)).toEqual(Array(6).fill(200))
  const seen = sidecar.device.requests
  expect(seen.map(({ method, target, body }) => [method, target, body?.toString()])).toEqual([
    ['GET', '/status', ''],
    ['POST', '/upload', 'hello'],
    ['POST', '/values', 'a=b'],
    ['GET', '/status', ''],
  ])
  expectNoOffer(seen)
})

it('C23 curl --http2 in cleartext gets a token, calls and uploads; its offers of h2c are ignored', async () => {
  needs('curl')
  const sidecar = await startSidecar()
  async function curl(path: string, ...args: string[]): Promise<string> {
    const format = ' %{http_version} %{http_code}'
    const done = await run('curl', ['-sS', '--http2', '-w', format, ...args, `${sidecar.url}${path}`])
    expect(done.stderr).toBe('')
    return done.stdout
  }
  const granted = await curl('/oauth/token', '-d', FORM)
  expect(granted).toMatch(/\} 1\.1 200$/)
  const token: string = JSON.parse(granted.slice(0, granted.lastIndexOf('}') + 1)).access_token
  const authorization = ['--oauth2-bearer', token]
  for (const upload of [
    [],
    ['--data-binary', 'hello'],
    ['-H', 'Transfer-Encoding: chunked', '--data-binary', 'hello'],
  ]) {
    expect(await curl('/values', ...authorization, ...upload)).toBe('from the device 1.1 200')
  }
  expect(await curl('/values', ...authorization, '-H', 'Expect: 100-continue', '-d', 'hello')).toBe(
    'from the device 1.1 200',
  )
  const seen = sidecar.device.requests
  expect(seen.map(({ body }) => body?.toString())).toEqual(['', 'hello', 'hello', 'hello'])
  expectNoOffer(seen)
  expect(await curl('/values')).toMatch(/"invalid_token".* 1\.1 401$/)
})
