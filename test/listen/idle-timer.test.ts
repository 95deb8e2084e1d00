import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import tls from 'node:tls'
import { expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'

const IDLE = 200
/** Tolerance of the sidecar (ms): a client that uses the connection in the last moment of the announced time is not cut off. */
const TOLERANCE = 1000

it('a persistent connection is closed after idle_timeout, counted from its last request', async () => {
  const sidecar = await startSidecar({ config: { listen: { idle_timeout: `${IDLE}ms` } } })
  const client = await rawConnection(sidecar.url)
  const opened = performance.now()
  let last = opened
  // Each pause is shorter than the timeout, their sum is longer.
  for (let request = 0; request < 4; request += 1) {
    if (request > 0) await pause((IDLE + TOLERANCE) * 0.4)
    client.forget()
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    last = performance.now()
    await client.waitFor('401')
  }
  expect(last - opened).toBeGreaterThan(IDLE + TOLERANCE)
  await client.closed
  expect(performance.now() - last).toBeGreaterThan(IDLE)
})

it('a connection without any request is closed after idle_timeout', async () => {
  const sidecar = await startSidecar({ config: { listen: { idle_timeout: `${IDLE}ms` } } })
  const client = await rawConnection(sidecar.url)
  await client.closed
  expect(client.received).toBe('')
})

it('a connection of which only parts of a TLS record arrive is closed after idle_timeout', async () => {
  const sidecar = await startSidecar({ transport: 'tls', config: { listen: { idle_timeout: `${IDLE}ms` } } })
  const wire = net.connect(Number(new URL(sidecar.url).port), '127.0.0.1').on('error', () => {})
  const client = tls.connect({ socket: wire, rejectUnauthorized: false }).on('error', () => {})
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(client, 'data')
  const closed = once(wire, 'close')
  // The longest record of application data. Each step of the sidecar's event loop finds a byte of it.
  wire.write(Buffer.from([23, 3, 3, 0x40, 0]))
  let sent = 0
  const timer = setInterval(() => {
    sent += 1
    wire.write('x')
  }, 1)
  closeLater(() => clearInterval(timer))
  await closed
  expect(sent).toBeLessThan(0x40_00)
})
