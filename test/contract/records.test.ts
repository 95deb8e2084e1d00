import { STATUS_CODES } from 'node:http'
import http2 from 'node:http2'
import { describe, expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { randomNumbers } from '../support/random.ts'
import { rawConnection } from '../support/raw.ts'
import { accessLines } from '../support/records.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** The name and labels of every sample. */
async function series(sidecar: TestSidecar): Promise<string[]> {
  const lines = (await sidecar.metrics()).split('\n')
  return lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.replace(/ \S+$/, ''))
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other']

describe('H79 Random requests', () => {
  it('H79 over the wire give only known values to the labels of the series', async () => {
    const roll = randomNumbers(79)
    const device = await startDevice((request, response) => {
      response.statusCode = Number(request.headers['x-status'])
      response.end()
    })
    const sidecar = await startSidecar({ device, transport: 'h2', config: { log: { access: false } } })
    const token = await sidecar.token()
    const session = http2.connect(sidecar.url, { rejectUnauthorized: false })
    closeLater(() => session.destroy())
    const word = (): string => roll(0x7fffffff).toString(36)

    function ask(method: string, status: number): Promise<void> {
      const path = `${['/oauth/token', '/'][roll(8)] ?? '/'}${roll(9) === 0 ? '' : word()}?${word()}=${word()}`
      const headers = { 'x-status': String(status), [`x-${word()}`]: word(), 'user-agent': word() }
      const shown =
        roll(3) === 0 ? { authorization: `Bearer ${word()}` } : { authorization: `Bearer ${token}` }
      const stream = session.request(
        { ':method': method, ':path': path, ...headers, ...shown },
        { endStream: true },
      )
      return new Promise((done) =>
        stream
          .on('error', () => {})
          .once('close', done)
          .resume(),
      )
    }
    let left = 300
    const workers = Array.from({ length: 32 }, async () => {
      for (; left > 0; left -= 1) {
        const method = METHODS[roll(12)]
        const made = method === undefined || method === 'other' ? word().toUpperCase() : method
        await ask(made, 200 + roll(400))
      }
    })
    await Promise.all(workers)
    const known = new Set([...Object.keys(STATUS_CODES), 'other', 'none'])
    expect(await sidecar.metric('postern_requests_total')).toBeGreaterThan(250)
    for (const one of await series(sidecar)) {
      const labels = Object.fromEntries(
        [...one.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, name, value]) => [name ?? '', value ?? '']),
      )
      if (labels.method !== undefined) expect(METHODS).toContain(labels.method)
      if (labels.code !== undefined) expect(known).toContain(labels.code)
      if (labels.endpoint !== undefined) expect(['api', 'oauth']).toContain(labels.endpoint)
    }
  })
})

describe('H80 Scrapers that hang', () => {
  it('H80 delay neither clients nor another scraper', async () => {
    const sidecar = await startSidecar()
    const token = await sidecar.token()
    const partial = [
      'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(4),
      'GET /metrics HTTP/1.1\r\nHost: x\r\n',
      'POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx',
      '',
    ]
    const before = process.memoryUsage().rss
    const hung = await Promise.all(Array.from({ length: 100 }, () => rawConnection(sidecar.adminUrl)))
    for (const [i, { socket }] of hung.entries()) {
      socket.pause()
      socket.write(partial[i % partial.length] ?? '')
    }
    // The clock stands still, so nothing waits until the scrapers are cut off.
    for (let i = 0; i < 30; i += 1) expect((await sidecar.request({ token })).status).toBe(200)
    expect(await sidecar.metrics()).toContain('postern_requests_total')
    expect(process.memoryUsage().rss - before).toBeLessThan(150 << 20)
  })
})

describe('H82 Control bytes and log injection', () => {
  const nasty = [
    '%0d%0a{"level":50}',
    '\x1b[2J\x1b]0;owned\x07',
    '\xe2\x80\xa8',
    '\x7f',
    '"\\',
    '\xff\xfe',
    '%00',
  ]

  it('H82 in an HTTP/1 path leave one bounded ASCII line of JSON for each request', async () => {
    const sidecar = await startSidecar()
    const token = await sidecar.token()
    let logged = accessLines(sidecar).length
    for (const bytes of [...nasty, 'a'.repeat(3000)]) {
      const path = `/p${bytes}?secret=${bytes}`
      const raw = await rawConnection(sidecar.url)
      raw.write(
        `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nX-A: b\r\nConnection: close\r\n\r\n`,
      )
      if (/^HTTP\/1\.1 200/.test(await raw.closed)) logged += 1
      expect(accessLines(sidecar).length).toBeGreaterThanOrEqual(logged)
      logged = accessLines(sidecar).length
    }
    expect(logged).toBeGreaterThan(2)
    for (const line of sidecar.logLines()) {
      expect(line).toMatch(/^\{[ -~]*\}$/)
      expect(line.length).toBeLessThan(1000)
      expect(line).not.toContain('secret=')
      const { level, msg } = JSON.parse(line)
      if (!msg.startsWith('insecure')) expect(level).toBe(30)
    }
  })

  it('H354 each line has its time in UTC, its severity and its event, whatever it is about', async () => {
    const sidecar = await startSidecar({ config: { public_paths: ['/'], browser: { login: 'on' } } })
    await sidecar.postToken({ grant_type: 'password', password: 'wrong' })
    await sidecar.request({ token: await sidecar.token() })
    await sidecar.reload({ realm: 'another' })
    const raw = await rawConnection(sidecar.url)
    raw.write('no HTTP\r\n\r\n')
    await raw.closed
    const lines = sidecar.logLines().map((line) => JSON.parse(line))
    expect(new Set(lines.map(({ msg }) => msg)).size).toBeGreaterThan(2)
    for (const { time, level, msg } of lines) {
      expect(new Date(time).toISOString()).toBe(time)
      expect(level).toBeOneOf([10, 20, 30, 40, 50, 60])
      expect(msg).toMatch(/./)
    }
  })

  it('H82 in an HTTP/2 path or method leave bounded ASCII lines of JSON', async () => {
    const sidecar = await startSidecar({ transport: 'h2' })
    const token = await sidecar.token()
    for (const bytes of nasty) {
      for (const request of [{ path: `/p${bytes}` }, { method: `M${bytes}` }]) {
        await sidecar.request({ token, ...request }).catch(() => {})
      }
    }
    expect(sidecar.logLines().length).toBeGreaterThan(nasty.length)
    for (const line of sidecar.logLines()) {
      expect(line).toMatch(/^\{[ -~]*\}$/)
      expect(line.length).toBeLessThan(1000)
    }
  })

  it('H82 a path or a header of 1 MiB is refused and leaves only bounded log lines', async () => {
    for (const transport of ['http1', 'tls'] as const) {
      const sidecar = await startSidecar({ transport })
      const before = sidecar.logLines().length
      for (const head of [
        `GET /${'a'.repeat(1 << 20)} HTTP/1.1\r\n`,
        `GET / HTTP/1.1\r\nX-A: ${'a'.repeat(1 << 20)}\r\n`,
      ]) {
        const raw = await rawConnection(sidecar.url)
        raw.write(`${head}Host: x\r\n\r\n`)
        expect(await raw.closed).toMatch(/^(?:HTTP\/1\.1 400 |$)/)
      }
      for (const line of sidecar.logLines().slice(before)) expect(line.length).toBeLessThan(1000)
      expect((await sidecar.request()).status).toBe(401)
    }
  })
})
