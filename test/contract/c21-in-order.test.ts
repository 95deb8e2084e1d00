import { once } from 'node:events'
import { expect, it } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { passUntil } from '../support/clock.ts'
import { startDevice, startHoldingDevice } from '../support/device.ts'
import { headOf, responsesIn } from '../support/http1-reader.ts'
import { rawConnection } from '../support/raw.ts'
import { PASSWORD_GRANT, startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

describeTransports(
  'C21 Pipelined requests',
  (transport) => {
    it('C21 pipelined requests reach the device one at a time, in the order sent', async () => {
      const { device, held } = await startHoldingDevice()
      const sidecar = await startSidecar({ transport, device })
      const bearer = `Authorization: Bearer ${await sidecar.token()}`
      const raw = await rawConnection(sidecar.url)
      const methods = ['PUT', 'GET', 'DELETE', 'POST', 'GET']
      raw.write(methods.map((method, i) => headOf(`${method} /${i} HTTP/1.1`, 'Host: x', bearer)).join(''))
      raw.end()
      for (let i = 0; i < methods.length; i += 1) {
        const request = await device.waitForRequests(i + 1)
        expect([request.method, request.target]).toEqual([methods[i], `/${i}`])
        // The sidecar has had all bytes since the first request: a second one at the device would be here by now.
        await sidecar.metrics()
        expect(device.requests).toHaveLength(i + 1)
        held[i]?.end(`response ${i}`)
      }
      expect(responsesIn(await raw.closed).map(({ text }) => text)).toEqual(
        methods.map((_, i) => `response ${i}`),
      )
    })

    it('C21 a body is read to its end before the next request, however the packets are cut', async () => {
      const sidecar = await startSidecar({ transport })
      const bearer = `Authorization: Bearer ${await sidecar.token()}`
      const raw = await rawConnection(sidecar.url)
      const sent =
        `${headOf('POST /a HTTP/1.1', 'Host: x', bearer, 'Transfer-Encoding: chunked')}3\r\nGET\r\n1\r\n \r\n0\r\n\r\n` +
        `${headOf('POST /b HTTP/1.1', 'Host: x', bearer, 'Content-Length: 4')}PUT \r\n` +
        headOf('GET /c HTTP/1.1', 'Host: x', bearer, 'Connection: close')
      for (const byte of Buffer.from(sent)) {
        raw.socket.write(Buffer.of(byte))
        if (byte % 3 === 0) await nextTurn()
      }
      expect(responsesIn(await raw.closed)).toHaveLength(3)
      expect(sidecar.device.requests.map(({ target, body }) => [target, body?.toString()])).toEqual([
        ['/a', 'GET '],
        ['/b', 'PUT '],
        ['/c', ''],
      ])
    })

    it('C21 a client that pipelines very many requests gets every response', async () => {
      const sidecar = await startSidecar({ transport })
      const bearer = `Authorization: Bearer ${await sidecar.token()}`
      const raw = await rawConnection(sidecar.url)
      // Through TLS the requests come in records of their own, and are otherwise the same.
      const count = transport === 'tls' ? 300 : 1500
      raw.write(headOf('GET /x HTTP/1.1', 'Host: x', bearer, `X-Pad: ${'x'.repeat(100)}`).repeat(count))
      raw.end()
      expect(responsesIn(await raw.closed)).toHaveLength(count)
      expect(sidecar.device.requests).toHaveLength(count)
    })

    it('C21 the requests that wait behind another are dropped when their client leaves', async () => {
      const { device } = await startHoldingDevice()
      const sidecar = await startSidecar({ transport, device })
      const bearer = `Authorization: Bearer ${await sidecar.token()}`
      const raw = await rawConnection(sidecar.url)
      raw.write(headOf('POST /x HTTP/1.1', 'Host: x', bearer).repeat(10))
      await device.waitForRequests(1)
      raw.reset()
      await device.waitForOpenConnections(0)
      await sidecar.metrics()
      expect(device.requests).toHaveLength(1)
    })

    it('C21 C24 a half-closed client that leaves during its second request gives its place to the next client', async () => {
      const { device, held } = await startHoldingDevice()
      const sidecar = await startSidecar({ transport, device, config: { upstream: { max_in_flight: 1 } } })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(headOf('GET /x HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`).repeat(2))
      raw.end()
      await device.waitForRequests(1)
      held[0]?.end('first')
      await raw.waitFor('first')
      await device.waitForRequests(2)
      raw.reset()
      const next = sidecar.request({ token })
      const second = held[1] ?? expect.fail('no second request')
      await passUntil(sidecar.clock, once(second, 'close'))
      await device.waitForRequests(3)
      held[2]?.end('next')
      expect((await next).text).toBe('next')
    })

    it('C21 an upgrade behind another request is served after that request', async () => {
      const device = await startDevice()
      device.server.on('upgrade', (_request, socket) => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
        socket.on('data', (chunk: Buffer) => socket.end(`echo ${chunk}`))
      })
      const sidecar = await startSidecar({ transport, device })
      const bearer = `Authorization: Bearer ${await sidecar.token()}`
      const form = [
        'Content-Type: application/x-www-form-urlencoded',
        `Content-Length: ${PASSWORD_GRANT.length}`,
      ]
      const raw = await rawConnection(sidecar.url)
      raw.write(
        `${headOf('POST /oauth/token HTTP/1.1', 'Host: x', ...form)}${PASSWORD_GRANT}` +
          `${headOf('GET /ws HTTP/1.1', 'Host: x', bearer, 'Connection: Upgrade', 'Upgrade: websocket')}early`,
      )
      const all = await raw.closed
      expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 101'])
      expect(all).toMatch(/echo early$/)
    })
  },
  ['http1', 'tls'],
)
