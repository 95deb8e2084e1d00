import { beforeAll, expect, it } from 'vitest'
import { expectError } from '../support/errors.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

describeTransports('C12', (transport) => {
  // Shared: nothing here may reach the device, so one device sees whether anything does.
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  it('C12 a refused request does not open so much as a connection to the device', async () => {
    expectError(await sidecar.request({ body: 'x'.repeat(100_000) }), 401, 'invalid_token')
    expectError(await sidecar.request({ token: 'unknown', body: ['a', 'b', 'c'] }), 401, 'invalid_token')
    expectError(await sidecar.request({ method: 'DELETE', path: '/everything' }), 401, 'invalid_token')
    expectError(
      await sidecar.request({ path: '/oauth/token', body: 'x', fields: ['Content-Type', 'text/plain'] }),
      400,
      'invalid_request',
    )
    expect(sidecar.device.byteCount).toBe(0)
    expect(sidecar.device.connections).toBe(0)
  })

  it('C12 a refusal over the limit does not reach the device either', async () => {
    const limited = await startSidecar({ transport, config: { limits: { api: { requests: 1 } } } })
    const token = await limited.token()
    expect((await limited.request({ token })).status).toBe(200)
    const { byteCount } = limited.device
    expectError(await limited.request({ token, body: 'x'.repeat(1000) }), 429, 'rate_limited')
    expect(limited.device.byteCount).toBe(byteCount)
  })

  it.each([
    ['announced and never sent', ['Content-Length', '1000000']],
    ['of unknown length and never sent', []],
  ])('C12 a refusal does not wait for a body: %s', async (_name, framing) => {
    const connection = await sidecar.connect()
    const exchange = connection.start({ method: 'POST', path: '/x', fields: framing, open: true })
    expectError(await exchange.response, 401, 'invalid_token')
    expect(sidecar.device.byteCount).toBe(0)
  })

  it('C12 a client that sends its whole body before it reads still gets the answer', async () => {
    const answer = await sidecar.request({ body: Buffer.alloc(200_000, 'x') })
    expectError(answer, 401, 'invalid_token')
  })

  it('C12 the body of a refused request does not pile up', async () => {
    const connection = await sidecar.connect()
    const exchange = connection.start({ method: 'POST', path: '/x', open: true })
    expectError(await exchange.response, 401, 'invalid_token')
    const before = process.memoryUsage().rss
    const piece = Buffer.alloc(1 << 20)
    // Either the sidecar stops the client, or it throws away what comes; it does not keep it.
    let gone = false
    void connection.closed.then(() => {
      gone = true
    })
    for (let sent = 0; sent < 64 && !gone; sent += 1) {
      if (exchange.write(piece)) continue
      const full = await Promise.race([exchange.drained().then(() => false), after(300).then(() => true)])
      if (full) break
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(150 << 20)
    expect(sidecar.device.byteCount).toBe(0)
    await sidecar.grant()
  })

  it('C12 no 100 Continue invites the body of a refused request', async () => {
    const connection = await sidecar.connect()
    const exchange = connection.start({
      method: 'POST',
      path: '/x',
      fields: ['Expect', '100-continue', 'Content-Length', '10'],
      open: true,
    })
    const answer = await exchange.response
    expectError(answer, 401, 'invalid_token')
    expect(answer.informational).toEqual([])
  })
})

describeTransports(
  'C12',
  (transport) => {
    it('C12 a request within the body of a refused one is never taken for a request', async () => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      const inner = `GET /smuggled HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`
      for (const [framing, body] of [
        [`Content-Length: ${inner.length}`, inner],
        ['Transfer-Encoding: chunked', `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`],
      ]) {
        const raw = await rawConnection(sidecar.url)
        raw.write(`POST /x HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n${body}`)
        raw.write(`GET /after HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
        const all = await raw.closed
        // The request behind it may be answered or not; a third answer would be to the one inside.
        expect(all.match(/HTTP\/1\.1 401/g)?.length).toBeGreaterThanOrEqual(1)
        expect(all.match(/HTTP\/1\.1 /g)?.length).toBeLessThanOrEqual(2)
        expect(all).not.toContain('HTTP/1.1 200')
      }
      expect(sidecar.device.byteCount).toBe(0)
    })
  },
  ['http1', 'tls'],
)

function after(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
