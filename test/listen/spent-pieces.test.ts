import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { giveBack, LARGE_BUFFER, lendBuffer } from '../../src/system/read-buffers.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { readBody, startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

/** A piece of a response that is large enough for its memory to be freed early, and small enough to be read at once. */
const SIZE = 40_000

afterEach(() => {
  vi.restoreAllMocks()
})

/** Watches the memory that is freed, and overwrites it: it may belong to others at once. */
function watchFreed() {
  return vi.spyOn(ArrayBuffer.prototype, 'transfer').mockImplementation(function (this: ArrayBuffer) {
    new Uint8Array(this).fill('!'.charCodeAt(0))
    return this
  })
}

describeTransports('The memory of a piece', (transport) => {
  it.each(['GET', 'POST'])(
    'H282 is used again only when the bytes of a response to %s have left it',
    async (method) => {
      const body = Buffer.alloc(SIZE, 'device ')
      const device = await startDevice(async (request, response) => {
        await readBody(request)
        response.writeHead(200, { 'Content-Length': SIZE })
        response.end(body)
      })
      const sidecar = await startSidecar({ transport, device })
      const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
      const client = await sidecar.connect()
      const freed = watchFreed()
      const response = await client.send({
        method,
        fields,
        ...(method === 'POST' ? { body: 'an upload' } : {}),
      })
      expect(response.body.equals(body)).toBe(true)
      await expect.poll(() => freed.mock.calls).toHaveLength(1)
    },
  )
})

it('H282 the memory that pieces of an upload over TLS share is used again only when all of them have left it', async () => {
  const body = Buffer.alloc(1024 ** 2, 'an upload over TLS ')
  let received: Buffer | undefined
  const device = await startDevice(async (request, response) => {
    received = await readBody(request)
    response.end()
  })
  const sidecar = await startSidecar({ transport: 'tls', device })
  const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
  const client = await sidecar.connect()
  const freed = watchFreed()
  await client.send({ method: 'POST', fields, body })
  expect(received?.equals(body)).toBe(true)
  const bytes = freed.mock.results.reduce((sum, { value }) => sum + value.byteLength, 0)
  expect(bytes).toBeGreaterThan(body.length / 2)
})

it('H283 slow readers over HTTP/2 take all large buffers, which come back when their responses have ended', async () => {
  const body = Buffer.alloc(4 * LARGE_BUFFER)
  body.write('the half', LARGE_BUFFER / 2)
  // A read from a Unix socket takes all that the kernel holds of a body that is written at once.
  const path = join(temporaryDirectory(), 'device.sock')
  const device = await startDevice((_request, response) => response.end(body), { path })
  const config = { upstream: { max_in_flight: 32 } }
  const sidecar = await startSidecar({ transport: 'h2', device, config })
  const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
  const slow = []
  for (let i = 0; i < 8; i += 1) {
    const download = (await sidecar.connect()).start({ fields })
    await download.waitFor('the half')
    download.pause()
    slow.push(download)
  }
  await expect.poll(countFree).toBe(0)
  // It is read in smaller pieces.
  expect((await sidecar.request({ fields })).body.equals(body)).toBe(true)
  for (const download of slow) {
    download.resume()
    expect((await download.response).body.equals(body)).toBe(true)
  }
  await expect.poll(countFree).toBe(8)
})

/** How many large buffers are not lent. */
function countFree(): number {
  const free: Buffer[] = []
  for (let buffer = lendBuffer(); buffer !== undefined; buffer = lendBuffer()) free.push(buffer)
  for (const buffer of free) giveBack(buffer)
  return free.length
}
