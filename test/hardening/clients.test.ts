import { once } from 'node:events'
import { expect, it } from 'vitest'
import { expectUnharmed } from '../support/aftermath.ts'
import { startDevice } from '../support/device.ts'
import { passServing, passUntilClosed } from '../support/pass-serving.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { startCutting } from '../support/scripted.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports, type Transport } from '../support/transports.ts'

/** Rounds. Fewer over TLS: one process pays for both sides of each handshake, and the handshake is not what is tested. */
const TIMES: Readonly<Record<Transport, number>> = { http1: 80, tls: 40, h2: 40 }
const AT_ONCE = 20

/** Runs `act` `times` times, twenty at once. */
async function repeatedly(times: number, act: (turn: number) => Promise<void>): Promise<void> {
  let turn = 0
  async function worker(): Promise<void> {
    while (turn < times) {
      turn += 1
      await act(turn)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

describeTransports('H58 Clients that leave', (transport) => {
  it('H58 every client that leaves within an upload or a download aborts its request at the device, and no socket stays open', async () => {
    /** By path: a response of the device that is sent in part, and one that has closed. */
    const begun = new Map<string, () => void>()
    const over = new Map<string, () => void>()
    const device = await startDevice((request, response) => {
      if (request.url === '/good') {
        response.end()
        return
      }
      response.once('close', over.get(request.url ?? '') ?? (() => {}))
      request.resume().on('error', () => {})
      response.write('some', begun.get(request.url ?? ''))
    })
    const sidecar = await startSidecar({
      transport,
      device,
      // None waits for the place of another: an upload that pauses would lose it.
      config: { upstream: { buffer_uploads: 'off', max_in_flight: 2 * AT_ONCE } },
    })
    const token = await sidecar.token()
    const fields = ['Authorization', `Bearer ${token}`]
    const baseline = process.getActiveResourcesInfo().length
    let mostAtDevice = 0

    await repeatedly(TIMES[transport], async (turn) => {
      const path = `/${turn}`
      const ended = Promise.withResolvers<void>()
      const sent = Promise.withResolvers<void>()
      over.set(path, ended.resolve)
      begun.set(path, sent.resolve)
      const connection = await sidecar.connect()
      const upload = turn % 2 === 0
      const exchange = connection.start(
        upload ? { method: 'POST', path, fields, open: true } : { path, fields },
      )
      exchange.response.catch(() => {})
      if (upload) {
        exchange.write('up')
        await sent.promise
        // Over HTTP/2 the sidecar holds a response that comes before the end of the upload for 50 ms.
        await passServing(sidecar, exchange.waitFor('some'), 50)
      }
      await exchange.waitFor('some')
      exchange.abort()
      // The clock stands still, so nothing of it waits for a deadline.
      await ended.promise
      mostAtDevice = Math.max(mostAtDevice, device.openConnections)
      over.delete(path)
      begun.delete(path)
      connection.close()
    })

    expect(mostAtDevice).toBeLessThanOrEqual(2 * AT_ONCE)
    await passUntilClosed(sidecar)
    await expectUnharmed(sidecar, token)
    await expect.poll(() => process.getActiveResourcesInfo().length).toBeLessThan(baseline + 20)
  })
})

describeTransports(
  'H59 Half-closed clients',
  (transport) => {
    it.each([
      ['a request', 'GET / HTTP/1.1\r\nHost: x\r\nAUTH\r\n', 1],
      ['a request with Connection: close', 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAUTH\r\n', 1],
      ['an upload', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nAUTH\r\nab', 1],
      [
        'a chunked upload',
        'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAUTH\r\n2\r\nab\r\n0\r\n\r\n',
        1,
      ],
      [
        'two pipelined requests',
        'GET / HTTP/1.1\r\nHost: x\r\nAUTH\r\nGET / HTTP/1.1\r\nHost: x\r\nAUTH\r\n',
        2,
      ],
      ['a request of HTTP/1.0', 'GET / HTTP/1.0\r\nHost: x\r\nAUTH\r\n', 1],
    ])(
      'H59 a half-close behind %s: every response arrives whole, and then the sidecar closes',
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

    it('H59 a half-close within a response: a slow reader gets all of it', async () => {
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

    it('H59 C20 a half-close behind a request that is answered at once: the client gets no 102 before the response', async () => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.end(`GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      expect(await raw.closed).toMatch(/^HTTP\/1\.1 200/)
    })

    it.each([
      ['chunks', 'Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n', (peer: RawPeer) => peer.end()],
      ['no length', 'X-A: b\r\n\r\nonly this', (peer: RawPeer) => peer.reset()],
    ])(
      'H49 C24 a response with %s that the device cuts does not look whole to an HTTP/1.0 client',
      async (_name, head, cut) => {
        const { device, proceed } = await startCutting(head, cut)
        const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
        const raw = await rawConnection(sidecar.url)
        const broken = once(raw.socket, 'error')
        raw.write(`GET / HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer ${await sidecar.token()}\r\n\r\n`)
        await raw.waitFor('only this')
        proceed()
        expect(await broken).toMatchObject([{ code: 'ECONNRESET' }])
      },
    )

    it('H59 a half-close within an upload: the client gets no 200, and the upload does not look whole to the device', async () => {
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
