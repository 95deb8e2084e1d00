import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { rawConnection } from '../support/raw.ts'
import { startAdmin, type Viewed } from './viewing.ts'

const REFUSED = 'unknown name in Host'

const statusFor = async (viewed: Viewed, host: string, path = '/metrics'): Promise<number> =>
  (await viewed.ask(path, { headers: { Host: host } })).status

/** The status of hand-written bytes. */
async function statusOf(viewed: Viewed, head: string): Promise<string> {
  const connection = await rawConnection(viewed.url)
  connection.write(`${head}\r\nConnection: close\r\n\r\n`)
  return (await connection.closed).slice(9, 12)
}

it('H151 serves addresses and names that no attacker can own, on every path', async () => {
  const viewed = await startAdmin({
    config: {
      admin: { hosts: ['ops.example', '*.lan.example'] },
      listen: { tls: { names: ['device.example', '10.0.0.1'] } },
    },
  })
  for (const host of [
    '127.0.0.1',
    '192.0.2.7:9464',
    '[::1]:9464',
    '[FE80::1%25eth0]',
    'localhost',
    'LocalHost.:80',
    'app.localhost',
    'postern:9464',
    'box.example.com',
    'BOX.example.COM.:9464',
    'ops.example',
    'a.lan.example',
    'device.example',
    '',
  ]) {
    expect(await statusFor(viewed, host), host).toBe(200)
  }
  expect(viewed.logged(REFUSED)).toEqual([])
})

it('H151 refuses every other name on every path, names it, and logs each once', async () => {
  const viewed = await startAdmin({ config: { admin: { hosts: ['*.lan.example'] } } })
  const refused = [
    'evil.example',
    'evil.example:9464',
    'com.',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '127.0.0.1.nip.io',
    'lan.example',
    'a.b.lan.example',
    'notlocalhost.x',
  ]
  for (const host of refused) expect(await statusFor(viewed, host), host).toBe(421)
  for (const path of ['/', '/page/events', '/page/main.js', '/healthz', '/readyz', '/nothing']) {
    expect(await statusFor(viewed, 'evil.example', path), path).toBe(421)
  }
  const { text, headers } = await viewed.ask('/metrics', { headers: { Host: 'evil.example' } })
  expect(headers['content-type']).toBe('application/json')
  expect(JSON.parse(text)).toMatchObject({
    error: 'unknown_host',
    error_description: expect.stringMatching(/evil\.example.*admin\.hosts/),
  })
  expect(viewed.logged(REFUSED)).toHaveLength(refused.length - 1)
  for (let i = 0; i < 30; i += 1) await statusFor(viewed, `n${i}.evil.example`)
  expect(viewed.logged(REFUSED)).toHaveLength(20)

  viewed.setHosts(['evil.example'])
  expect(await statusFor(viewed, 'evil.example')).toBe(200)
})

it('H151 reads Host strictly, and never serves a target with an authority', async () => {
  const viewed = await startAdmin()
  for (const [head, status] of [
    ['GET /metrics HTTP/1.1\r\nHost: x\r\nHost: evil.example', '400'],
    ['GET /metrics HTTP/1.1\r\nHost: evil.example@x', '400'],
    ['GET /metrics HTTP/1.1\r\nHost: x/evil.example', '400'],
    ['GET /metrics HTTP/1.1', '400'],
    ['GET /metrics HTTP/1.0', '200'],
    ['GET http://evil.example/metrics HTTP/1.1\r\nHost: x', '404'],
    ['GET http://x/metrics HTTP/1.1\r\nHost: evil.example', '421'],
    ['GET //metrics HTTP/1.1\r\nHost: x', '404'],
    ['OPTIONS * HTTP/1.1\r\nHost: x', '404'],
  ] as const) {
    expect(await statusOf(viewed, head), head).toBe(status)
  }
})

it('H151 does not check Host on a Unix socket, which no browser opens', async () => {
  const viewed = await startAdmin({ address: `unix:${join(temporaryDirectory(), 'admin.sock')}` })
  expect(await statusFor(viewed, 'evil.example')).toBe(200)
  expect(await statusFor(viewed, 'evil.example', '/')).toBe(200)
})

it('H151 /metrics, /healthz and /readyz answer scrapers as ever, with a page password, too', async () => {
  for (const password of [false, true]) {
    const viewed = await startAdmin({ password, address: '0.0.0.0:0' })
    const reply = async (method: string, path: string) => {
      const { status, headers, text } = await viewed.ask(path, { method })
      const { date, connection, ...others } = headers
      return { status, ...others, text }
    }
    const type = 'application/json'
    const common = { status: 200, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }
    const ready = { ...common, 'content-type': type, 'content-length': '15', text: '{"ready":true}\n' }
    const metrics = {
      ...common,
      'content-type': 'text/plain; version=0.0.4',
      'content-length': '13',
      text: 'postern_up 1\n',
    }
    expect(await reply('GET', '/metrics')).toEqual(metrics)
    expect(await reply('HEAD', '/metrics')).toEqual({ ...metrics, text: '' })
    expect(await reply('GET', '/readyz?x')).toEqual(ready)
    expect(await reply('GET', '/healthz')).toEqual({
      ...ready,
      'content-length': '16',
      text: '{"status":"ok"}\n',
    })
    expect(await reply('POST', '/metrics')).toMatchObject({ status: 405, allow: 'GET, HEAD' })
    expect(JSON.parse((await reply('GET', '/constructor')).text)).toEqual({
      error: 'not_found',
      pages: ['/', '/metrics', '/healthz', '/readyz'],
    })
  }
})
