import type { ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { type Device, startDevice, startHoldingDevice } from '../support/device.ts'
import { expectUnharmed } from '../support/expectations.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { waitForQueued } from '../support/waiting.ts'

/** Half-closed clients are probed at this interval (ms) while others wait. */
const PROBE = 250

interface Scene {
  readonly sidecar: TestSidecar
  readonly token: string
  readonly device: Device
  /** The responses that the device holds, in order of arrival. */
  readonly held: readonly ServerResponse[]
  /** Waits until `count` requests are queued. */
  queued(count: number): Promise<void>
  /** Sends a request. */
  ask(path: string, version?: '1.0' | '1.1'): Promise<RawPeer>
  /** Sends a request and then FIN. */
  halfClosed(path: string): Promise<RawPeer>
  /** Queues an ordinary client, the `count`th in the queue; `leave` resets its connection. */
  waiter(count: number): Promise<{ readonly response: Promise<string>; leave(): Promise<void> }>
}

describeTransports(
  'C20 A client that has closed its sending side',
  (transport) => {
    /** A device that takes one request at once and holds it until the test answers. */
    async function start(): Promise<Scene> {
      const { device, held } = await startHoldingDevice()
      const sidecar = await startSidecar({
        transport,
        device,
        config: { upstream: { max_in_flight: 1 } },
      })
      const token = await sidecar.token()
      const fields = `Host: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`
      const queued = (count: number) => waitForQueued(sidecar, count)
      const ask: Scene['ask'] = async (path, version = '1.1') => {
        const client = await rawConnection(sidecar.url)
        client.write(`GET ${path} HTTP/${version}\r\n${fields}`)
        return client
      }
      return {
        sidecar,
        token,
        device,
        held,
        queued,
        ask,
        async halfClosed(path) {
          const client = await ask(path)
          client.end()
          return client
        },
        async waiter(count) {
          const client = await ask('/waiter')
          await queued(count)
          return {
            response: client.closed,
            async leave() {
              client.reset()
              await queued(count - 1)
            },
          }
        },
      }
    }

    it('C20 gets only the response of a slow device, also if it alone was queued', async () => {
      const { device, held, queued, halfClosed, sidecar } = await start()
      const atDevice = await halfClosed('/slow')
      await device.waitForRequests(1)
      await sidecar.clock.advance(2 * PROBE)
      held[0]?.write('late but whole')
      await atDevice.waitFor('late but whole')
      const inQueue = await halfClosed('/waits')
      await queued(1)
      await sidecar.clock.advance(2 * PROBE)
      held[0]?.end()
      await device.waitForRequests(2)
      held[1]?.end('later still')
      expect(await atDevice.closed).toMatch(/^HTTP\/1\.1 200 [\s\S]+late but whole/)
      expect(await inQueue.closed).toMatch(/^HTTP\/1\.1 200 [\s\S]+later still/)
    })

    it('C20 is probed with 102 only while another request waits for its place', async () => {
      const { device, held, halfClosed, sidecar, waiter } = await start()
      const client = await halfClosed('/slow')
      await device.waitForRequests(1)
      const { leave } = await waiter(1)
      expect(client.received).toBe('')
      await sidecar.clock.advance(PROBE)
      await client.waitFor('HTTP/1.1 102 Processing\r\n\r\n')
      await leave()
      client.forget()
      await sidecar.clock.advance(2 * PROBE)
      held[0]?.end('late but whole')
      expect(await client.closed).toMatch(/^HTTP\/1\.1 200 [\s\S]+late but whole/)
    })

    it('C20 C25 and then leaves loses its place at the device to a waiting request', async () => {
      const { device, held, halfClosed, sidecar, waiter } = await start()
      const client = await halfClosed('/gone')
      await device.waitForRequests(1)
      client.socket.destroy()
      const { response } = await waiter(1)
      await passUntil(sidecar.clock, device.waitForRequests(2))
      held[1]?.end('served')
      expect(await response).toContain('served')
    })

    it('C20 C25 and then leaves loses its place in the queue to the request behind it', async () => {
      const { device, held, sidecar, token, queued, halfClosed, waiter } = await start()
      const first = sidecar.request({ token })
      await device.waitForRequests(1)
      const client = await halfClosed('/gone')
      await queued(1)
      client.socket.destroy()
      const { response } = await waiter(2)
      await passUntil(sidecar.clock, queued(1))
      held[0]?.end('first')
      expect((await first).text).toBe('first')
      await device.waitForRequests(2)
      held[1]?.end('served')
      expect(await response).toContain('served')
      expect(device.requests.map(({ target }) => target)).not.toContain('/gone')
    })

    it.each(['before its response', 'within its response'])(
      'C20 %s gets a body of any framing whole, although the device pauses and another request waits',
      async (when) => {
        const bodies = [
          ['1.1', { 'Content-Length': 11 }],
          ['1.1', {}],
          ['1.0', {}],
        ] as const
        await Promise.all(
          bodies.map(async ([version, fields]) => {
            const { device, held, ask, sidecar, waiter } = await start()
            const client = await ask('/pauses', version)
            if (when === 'before its response') client.end()
            await device.waitForRequests(1)
            held[0]?.writeHead(200, fields)
            held[0]?.write('begun')
            await client.waitFor('begun')
            if (when === 'within its response') client.end()
            const { response } = await waiter(1)
            await sidecar.clock.advance(2 * PROBE)
            held[0]?.end(', done')
            const all = await client.closed
            expect(all.replace(/\r\n\w+\r\n/g, '')).toMatch(/^HTTP\/1\.1 200 [\s\S]+begun, done/)
            expect(client.error).toBeUndefined()
            await device.waitForRequests(2)
            held[1]?.end('served')
            expect(await response).toContain('served')
          }),
        )
      },
    )

    it('C24 and then leaves within its response: the write of the next bytes from the device ends the exchange', async () => {
      const { device, held, sidecar, halfClosed } = await start()
      const client = await halfClosed('/gone')
      await device.waitForRequests(1)
      held[0]?.write('begun')
      await client.waitFor('begun')
      client.socket.destroy()
      // The first one makes the kernel of the client reset the connection, and a later one fails.
      await expect
        .poll(() => {
          held[0]?.write('more')
          return device.openConnections
        })
        .toBe(0)
      await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(0)
    })
  },
  ['http1', 'tls'],
)

/** Requests behind which a client closes its sending side, and how many responses it gets. Through TLS, the first two. */
const HALF_CLOSED: readonly (readonly [name: string, bytes: string, responses: number])[] = [
  ['a request', 'GET / HTTP/1.1\r\nHost: x\r\nAUTH\r\n', 1],
  [
    'a chunked upload',
    'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAUTH\r\n2\r\nab\r\n0\r\n\r\n',
    1,
  ],
  ['a request with Connection: close', 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAUTH\r\n', 1],
  ['an upload', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nAUTH\r\nab', 1],
  ['two pipelined requests', 'GET / HTTP/1.1\r\nHost: x\r\nAUTH\r\n'.repeat(2), 2],
  ['a request of HTTP/1.0', 'GET / HTTP/1.0\r\nHost: x\r\nAUTH\r\n', 1],
]

describeTransports(
  'C20 H59 A half-close',
  (transport) => {
    it.each(transport === 'tls' ? HALF_CLOSED.slice(0, 2) : HALF_CLOSED)(
      'C20 H59 behind %s: every response arrives whole, and then the sidecar closes',
      async (_name, bytes, responses) => {
        const proceed = Promise.withResolvers<void>()
        const device = await startDevice(async (request, response) => {
          request.resume()
          await proceed.promise
          response.end('late but whole')
        })
        const sidecar = await startSidecar({ transport, device })
        const token = await sidecar.token()
        const raw = await rawConnection(sidecar.url)
        raw.end(bytes.replaceAll('AUTH', `Authorization: Bearer ${token}\r\n`))
        await device.waitForRequests(1)
        // Meanwhile the sidecar reads the end of the client's side.
        await sidecar.metrics()
        proceed.resolve()
        expect((await raw.closed).match(/HTTP\/1\.1 200[\s\S]*?late but whole/g)).toHaveLength(responses)
        await expectUnharmed(sidecar, token, responses)
      },
    )

    it('C20 H59 within a response: a slow reader gets all of it', async () => {
      const body = Buffer.alloc(8 << 20, 'x')
      const device = await startDevice((_request, response) => response.end(body))
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(`GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      await raw.waitFor('200 OK')
      raw.socket.pause()
      raw.end('')
      await sidecar.metrics()
      // Longer than a half-closed client may stop reading while others wait.
      await sidecar.clock.advance(4_999)
      raw.socket.resume()
      const all = await raw.closed
      expect(all.length - all.indexOf('\r\n\r\n') - 4).toBe(body.length)
    })

    it('C20 H59 behind a request that is answered at once: the client gets no 102 before the response', async () => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.end(`GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      expect(await raw.closed).toMatch(/^HTTP\/1\.1 200/)
    })

    it('C20 H59 within an upload: the client gets no 200, and the upload does not look whole to the device', async () => {
      const whole: string[] = []
      const device = await startDevice((request, response) => {
        request.on('error', () => {})
        request.resume().once('end', () => {
          whole.push(request.url ?? '')
          response.end()
        })
      })
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.end(
        `POST /half HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: 10\r\n\r\nhalf`,
      )
      expect(await raw.closed).not.toContain('HTTP/1.1 200')
      await expectUnharmed(sidecar, token)
      expect(whole).toEqual(['/good'])
    })
  },
  ['http1', 'tls'],
)
