import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { rawConnection } from '../support/raw.ts'
import { answersIn, typed } from '../support/raw-answers.ts'
import { encodeForm, PASSWORD, startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

const FORM = encodeForm({ grant_type: 'password', password: PASSWORD })

/** A device that answers only when it is told to. */
async function heldDevice() {
  const held: ServerResponse[] = []
  const device = await startDevice((_request, response) => held.push(response))
  return { device, held }
}

describeTransports(
  'C21 in order',
  (transport) => {
    it('C21 pipelined requests reach the device one after another, in the order in which they were sent', async () => {
      const { device, held } = await heldDevice()
      const sidecar = await startSidecar({ transport, device })
      const bearer = `Authorization: Bearer ${await sidecar.token()}`
      const raw = await rawConnection(sidecar.url)
      const methods = ['PUT', 'GET', 'DELETE', 'POST', 'GET']
      raw.write(methods.map((method, i) => typed(`${method} /${i} HTTP/1.1`, 'Host: x', bearer)).join(''))
      raw.end()
      for (let i = 0; i < methods.length; i += 1) {
        const request = await device.waitForRequests(i + 1)
        expect([request.method, request.target]).toEqual([methods[i], `/${i}`])
        // What else is at the device would have come with it: the bytes are with the sidecar since the first one.
        await sidecar.metrics()
        expect(device.requests).toHaveLength(i + 1)
        held[i]?.end(`answer ${i}`)
      }
      expect(answersIn(await raw.closed).map(({ text }) => text)).toEqual(
        methods.map((_, i) => `answer ${i}`),
      )
    })

    it('C21 a body is read to its end before the next request, whatever the packets', async () => {
      const sidecar = await startSidecar({ transport })
      const bearer = `Authorization: Bearer ${await sidecar.token()}`
      const raw = await rawConnection(sidecar.url)
      const sent =
        `${typed('POST /a HTTP/1.1', 'Host: x', bearer, 'Transfer-Encoding: chunked')}3\r\nGET\r\n1\r\n \r\n0\r\n\r\n` +
        `${typed('POST /b HTTP/1.1', 'Host: x', bearer, 'Content-Length: 4')}PUT \r\n` +
        typed('GET /c HTTP/1.1', 'Host: x', bearer, 'Connection: close')
      for (const byte of Buffer.from(sent)) {
        raw.socket.write(Buffer.of(byte))
        if (byte % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
      }
      expect(answersIn(await raw.closed)).toHaveLength(3)
      expect(sidecar.device.requests.map(({ target, body }) => [target, body?.toString()])).toEqual([
        ['/a', 'GET '],
        ['/b', 'PUT '],
        ['/c', ''],
      ])
    })

    it('C21 a client that sends far ahead is held back, and gets every answer', async () => {
      const sidecar = await startSidecar({ transport })
      const bearer = `Authorization: Bearer ${await sidecar.token()}`
      const raw = await rawConnection(sidecar.url)
      const count = 1500
      raw.write(typed('GET /x HTTP/1.1', 'Host: x', bearer, `X-Pad: ${'x'.repeat(100)}`).repeat(count))
      raw.end()
      expect(answersIn(await raw.closed)).toHaveLength(count)
      expect(sidecar.device.requests).toHaveLength(count)
    })

    it('C21 a client that leaves while others of its requests wait: the device is left in peace', async () => {
      const { device } = await heldDevice()
      const sidecar = await startSidecar({ transport, device })
      const bearer = `Authorization: Bearer ${await sidecar.token()}`
      const raw = await rawConnection(sidecar.url)
      raw.write(typed('POST /x HTTP/1.1', 'Host: x', bearer).repeat(10))
      await device.waitForRequests(1)
      raw.reset()
      await device.waitForOpenConnections(0)
      await sidecar.metrics()
      expect(device.requests).toHaveLength(1)
    })

    it('C21 C24 a client closes its side, and leaves while its second request is served: its place goes to the next', async () => {
      const { device, held } = await heldDevice()
      const sidecar = await startSidecar({ transport, device, config: { upstream: { max_in_flight: 1 } } })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(typed('GET /x HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`).repeat(2))
      raw.end()
      await device.waitForRequests(1)
      held[0]?.end('first')
      await raw.waitFor('first')
      await device.waitForRequests(2)
      raw.reset()
      const next = sidecar.request({ token })
      await once(held[1] ?? expect.fail('no second request'), 'close')
      await device.waitForRequests(3)
      held[2]?.end('next')
      expect((await next).text).toBe('next')
    })

    it('C21 an upgrade behind another request is served when that one has been', async () => {
      const device = await startDevice()
      device.server.on('upgrade', (_request, socket) => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
        socket.on('data', (chunk: Buffer) => socket.end(`echo ${chunk}`))
      })
      const sidecar = await startSidecar({ transport, device })
      const bearer = `Authorization: Bearer ${await sidecar.token()}`
      const form = ['Content-Type: application/x-www-form-urlencoded', `Content-Length: ${FORM.length}`]
      const raw = await rawConnection(sidecar.url)
      raw.write(
        `${typed('POST /oauth/token HTTP/1.1', 'Host: x', ...form)}${FORM}` +
          `${typed('GET /ws HTTP/1.1', 'Host: x', bearer, 'Connection: Upgrade', 'Upgrade: websocket')}early`,
      )
      const all = await raw.closed
      expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 101'])
      expect(all).toMatch(/echo early$/)
    })
  },
  ['http1', 'tls'],
)
