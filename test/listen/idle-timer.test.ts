import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import { expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { nextAccepted } from '../support/waiting.ts'

const IDLE = 5_000
/** Tolerance of the sidecar (ms): a client that uses the connection in the last moment of the announced time is not cut off. */
const TOLERANCE = 1_000

const config = { listen: { idle_timeout: `${IDLE}ms` } }
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

it('a persistent connection is closed after idle_timeout, counted from its last request', async () => {
  const clock = stillClock()
  const sidecar = await startSidecar({ clock, config })
  const accepted = nextAccepted()
  const client = await rawConnection(sidecar.url)
  const socket = await accepted
  // Each pause is shorter than the timeout, their sum is longer.
  for (let request = 0; request < 4; request += 1) {
    await clock.advance((IDLE + TOLERANCE) * 0.4)
    client.forget()
    client.write(REQUEST)
    await client.waitFor('401')
  }
  await clock.advance(IDLE + TOLERANCE - 1)
  expect(socket.destroyed).toBe(false)
  await clock.advance(1)
  expect(socket.destroyed).toBe(true)
  await client.closed
})

it('a connection without any request is closed after idle_timeout', async () => {
  const clock = stillClock()
  const sidecar = await startSidecar({ clock, config })
  const accepted = nextAccepted()
  const client = await rawConnection(sidecar.url)
  const socket = await accepted
  await clock.advance(IDLE + TOLERANCE - 1)
  expect(socket.destroyed).toBe(false)
  await clock.advance(1)
  expect(socket.destroyed).toBe(true)
  expect(await client.closed).toBe('')
})

it('empty lines before a request count as activity', async () => {
  const clock = stillClock()
  const sidecar = await startSidecar({ clock, config })
  const accepted = nextAccepted()
  const client = await rawConnection(sidecar.url)
  const socket = await accepted
  client.write(REQUEST)
  await client.waitFor('401')
  await clock.advance(IDLE)
  client.write('\r\n')
  await expect.poll(() => socket.bytesRead).toBe(REQUEST.length + 2)
  await clock.advance(IDLE + TOLERANCE - 1)
  expect(socket.destroyed).toBe(false)
  await clock.advance(1)
  expect(socket.destroyed).toBe(true)
  await client.closed
})

it('a connection that waits for the device is not idle, and is closed idle_timeout after its response', async () => {
  const clock = stillClock()
  const sidecar = await startSidecar({ clock, config: { ...config, upstream: { response_timeout: '1h' } } })
  const held = Promise.withResolvers<() => void>()
  sidecar.device.handle((_request, response) => held.resolve(() => void response.end('at last')))
  const token = await sidecar.token()
  const accepted = nextAccepted()
  const client = await rawConnection(sidecar.url)
  const socket = await accepted
  client.write(`GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  const answer = await held.promise
  // It is looked at every six seconds, and answered between two looks.
  await clock.advance(4.5 * (IDLE + TOLERANCE))
  answer()
  await client.waitFor('at last')
  await clock.advance(IDLE + TOLERANCE - 1)
  expect(socket.destroyed).toBe(false)
  await clock.advance(1)
  expect(socket.destroyed).toBe(true)
  await client.closed
})

it('a connection of which only parts of a TLS record arrive is closed after idle_timeout', async () => {
  const clock = stillClock()
  const sidecar = await startSidecar({ transport: 'tls', clock, config })
  const accepted = nextAccepted()
  const wire = net.connect(Number(new URL(sidecar.url).port), '127.0.0.1').on('error', () => {})
  closeLater(() => void wire.destroy())
  const client = tls.connect({ socket: wire, rejectUnauthorized: false }).on('error', () => {})
  const socket = await accepted
  client.write(REQUEST)
  await once(client, 'data')
  const before = socket.bytesRead
  // The longest record of application data. A byte of it arrives every millisecond.
  wire.write(Buffer.from([23, 3, 3, 0x40, 0]))
  await clock.advance(IDLE + TOLERANCE - 10)
  for (let sent = 1; sent < 10; sent += 1) {
    wire.write('x')
    await expect.poll(() => socket.bytesRead).toBe(before + 5 + sent)
    await clock.advance(1)
  }
  expect(socket.destroyed).toBe(false)
  const closed = once(socket, 'close')
  await clock.advance(1)
  await closed
})
