import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { expectUnharmed } from '../support/aftermath.ts'
import { startDevice } from '../support/device.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { startCutting } from '../support/scripted.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports, type Transport } from '../support/transports.ts'

/** A TLS handshake costs both sides, which here are one process, and adds nothing to what is looked for. */
const TIMES: Readonly<Record<Transport, number>> = { http1: 120, tls: 60, h2: 60 }
const AT_ONCE = 20

/** Runs `act` so many times, twenty at once. */
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

describeTransports('58', (transport) => {
  it('H58 leaving mid-upload and mid-download, again and again: every device request is aborted at once, sockets stay flat', async () => {
    /** By path: the head has come; the device's side is over. */
    const reached = new Map<string, () => void>()
    const over = new Map<string, () => void>()
    const device = await startDevice((request, response) => {
      if (request.url === '/good') {
        response.end()
        return
      }
      response.once('close', over.get(request.url ?? '') ?? (() => {}))
      request.resume().on('error', () => {})
      response.write('some')
      reached.get(request.url ?? '')?.()
    })
    const sidecar = await startSidecar({ transport, device })
    const token = await sidecar.token()
    const fields = ['Authorization', `Bearer ${token}`]
    const baseline = process.getActiveResourcesInfo().length
    let slowest = 0
    let mostAtDevice = 0

    await repeatedly(TIMES[transport], async (turn) => {
      const path = `/${turn}`
      const ended = Promise.withResolvers<void>()
      over.set(path, ended.resolve)
      const connection = await sidecar.connect()
      const upload = turn % 2 === 0
      const exchange = connection.start(
        upload ? { method: 'POST', path, fields, open: true } : { path, fields },
      )
      exchange.response.catch(() => {})
      if (upload) exchange.write('up')
      await exchange.waitFor('some')
      const left = performance.now()
      exchange.abort()
      await ended.promise
      slowest = Math.max(slowest, performance.now() - left)
      mostAtDevice = Math.max(mostAtDevice, device.openConnections)
      over.delete(path)
      connection.close()
    })

    expect(slowest, 'ms; a second on a machine that has nothing else to do').toBeLessThan(5000)
    expect(mostAtDevice).toBeLessThanOrEqual(2 * AT_ONCE)
    await expectUnharmed(sidecar, token)
    await expect.poll(() => process.getActiveResourcesInfo().length).toBeLessThan(baseline + 20)
  })
})

describeTransports(
  '59',
  (transport) => {
    it.each([
      ['a request', 'GET / HTTP/1.1\r\nHost: x\r\nAUTH\r\n', 1],
      [
        'a request that is the last by its own word',
        'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAUTH\r\n',
        1,
      ],
      ['an upload', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nAUTH\r\nab', 1],
      [
        'a chunked upload',
        'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nAUTH\r\n2\r\nab\r\n0\r\n\r\n',
        1,
      ],
      [
        'two requests at once',
        'GET / HTTP/1.1\r\nHost: x\r\nAUTH\r\nGET / HTTP/1.1\r\nHost: x\r\nAUTH\r\n',
        2,
      ],
      ['a request of HTTP/1.0', 'GET / HTTP/1.0\r\nHost: x\r\nAUTH\r\n', 1],
    ])(
      'H59 half-close behind %s: every response arrives whole, and then the connection goes',
      async (_name, bytes, answers) => {
        const device = await startDevice((request, response) => {
          request.resume()
          setTimeout(50).then(() => response.end('late but whole'))
        })
        const sidecar = await startSidecar({ transport, device })
        const token = await sidecar.token()
        const raw = await rawConnection(sidecar.url)
        raw.end(bytes.replaceAll('AUTH', `Authorization: Bearer ${token}\r\n`))
        expect((await raw.closed).match(/HTTP\/1\.1 200[\s\S]*?late but whole/g)).toHaveLength(answers)
        await expectUnharmed(sidecar, token, answers)
      },
    )

    it('H59 half-close behind a response that has begun: who reads slowly reads all of it', async () => {
      const body = Buffer.alloc(8 << 20, 'x')
      const device = await startDevice((_request, response) => response.end(body))
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.write(`GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      await raw.waitFor('200 OK')
      raw.socket.pause()
      raw.end('')
      // Longer than a response may pause whose client might be gone.
      await setTimeout(700)
      raw.socket.resume()
      const all = await raw.closed
      expect(all.length - all.indexOf('\r\n\r\n') - 4).toBe(body.length)
    })

    it('H59 C19 half-close: an answer that comes at once is the first thing that the client hears', async () => {
      const sidecar = await startSidecar({ transport })
      const token = await sidecar.token()
      const raw = await rawConnection(sidecar.url)
      raw.end(`GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`)
      expect(await raw.closed).toMatch(/^HTTP\/1\.1 200/)
    })

    it.each([
      ['chunks', 'Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n', (peer: RawPeer) => peer.end()],
      ['what lasts until the end', 'X-A: b\r\n\r\nonly this', (peer: RawPeer) => peer.reset()],
    ])('H49 C24 a cut body of %s does not look whole to a client of HTTP/1.0', async (_name, head, cut) => {
      const { device, proceed } = await startCutting(head, cut)
      const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
      const raw = await rawConnection(sidecar.url)
      const broken = once(raw.socket, 'error')
      raw.write(`GET / HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer ${await sidecar.token()}\r\n\r\n`)
      await raw.waitFor('only this')
      proceed()
      expect(await broken).toMatchObject([{ code: 'ECONNRESET' }])
    })

    it('H59 half-close within an upload: a refusal or nothing, and the device sees no whole request', async () => {
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
