import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** Larger than the kernel buffers of a client that reads nothing. */
const LARGE = Buffer.alloc(16 * 1024 * 1024)

/** The default of `upstream.queue.timeout` (ms). */
const QUEUE_TIMEOUT = 5_000

/** Waits until the sidecar holds bytes that the client does not read. */
async function stalled(sidecar: TestSidecar): Promise<void> {
  await expect.poll(() => sidecar.metric('postern_memory_bytes', { of: 'responses' })).toBeGreaterThan(0)
}

async function start(): Promise<{ readonly sidecar: TestSidecar; readonly token: string }> {
  const device = await startDevice((request, response) =>
    response.end(request.url === '/large' ? LARGE : 'ok'),
  )
  const upstream = { max_in_flight: 1, queue: { timeout: `${QUEUE_TIMEOUT}ms` } }
  const sidecar = await startSidecar({ device, config: { upstream } })
  return { sidecar, token: await sidecar.token() }
}

it('C25 a client that reads nothing loses its place at the device when another request waits for one', async () => {
  const { sidecar, token } = await start()
  const slow = await rawConnection(sidecar.url)
  slow.write(`GET /large HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await slow.waitFor('200 OK')
  slow.socket.pause()
  await stalled(sidecar)
  expect((await passUntil(sidecar.clock, sidecar.request({ token }))).status).toBe(200)
  slow.socket.resume()
  expect((await slow.closed).length).toBeLessThan(LARGE.length)
})

it('C25 a client may pause in its download while no other request waits', async () => {
  const { sidecar, token } = await start()
  const slow = await rawConnection(sidecar.url)
  slow.write(`GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await slow.waitFor('200 OK')
  slow.socket.pause()
  await stalled(sidecar)
  await sidecar.clock.advance(2 * QUEUE_TIMEOUT)
  slow.socket.resume()
  expect((await slow.closed).length).toBeGreaterThan(LARGE.length)
})
