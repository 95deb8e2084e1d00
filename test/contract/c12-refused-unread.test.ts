import { beforeAll, expect, it } from 'vitest'
import { prepareSite } from '../process/serve.ts'
import { expectError } from '../support/expectations.ts'
import { figuresOf } from '../support/processes.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { sendThenRead } from './blocking-client.ts'

/** Bytes. */
const UPLOAD = 128 << 20
/** What the process may grow by with buffers and uncollected garbage: less than if it kept the upload. */
const MOST_GROWTH = 100 << 20

describeTransports('C12 A refused request', (transport) => {
  // Shared by all tests: none of them may reach the device.
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  it('C12 a refused request opens no connection to the device', async () => {
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

  it('C12 a request over the limit does not reach the device', async () => {
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
  ])('C12 a refusal does not wait for the body: %s', async (_name, framing) => {
    const connection = await sidecar.connect()
    const exchange = connection.start({ method: 'POST', path: '/x', fields: framing, open: true })
    expectError(await exchange.response, 401, 'invalid_token')
    expect(sidecar.device.byteCount).toBe(0)
  })

  it('C12 a client that sends its body in one write gets the refusal', async () => {
    const response = await sidecar.request({ body: Buffer.alloc(200_000, 'x') })
    expectError(response, 401, 'invalid_token')
  })

  it('C12 H13 a refused request gets no 100 Continue', async () => {
    const connection = await sidecar.connect()
    const exchange = connection.start({
      method: 'POST',
      path: '/x',
      fields: ['Expect', '100-continue', 'Content-Length', '10'],
      open: true,
    })
    const response = await exchange.response
    expectError(response, 401, 'invalid_token')
    expect(response.informational).toEqual([])
  })
})

describeTransports(
  'C12 A refused request in HTTP/1',
  (transport) => {
    it('C12 the body of a refused request is discarded at constant memory', async () => {
      const site = await prepareSite({ transport })
      const sidecar = await site.serve()
      const before = figuresOf(sidecar.pid).resident
      const head = 'POST /x HTTP/1.1\r\nHost: device'
      expectError(await sendThenRead(sidecar.url, head, { size: UPLOAD }), 401, 'invalid_token')
      expect(figuresOf(sidecar.pid).mostResident - before).toBeLessThan(MOST_GROWTH)
      expect(site.device.byteCount).toBe(0)
    })
  },
  ['http1', 'tls'],
)
