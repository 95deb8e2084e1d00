import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { expectError } from '../support/errors.ts'
import { type RawPeer, unusedPort } from '../support/raw.ts'
import { brokenBy, nextRequest, startCutting, startScripted } from '../support/scripted.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

/** The default of `upstream.idle_timeout` (ms). */
const IDLE_TIMEOUT = 60_000

describeTransports('C24 Broken transfers', (transport) => {
  it('C24 a device that is down is 500, and a device that is back is used again', async () => {
    const port = await unusedPort()
    const sidecar = await startSidecar({ transport, device: { url: `http://127.0.0.1:${port}` } })
    const token = await sidecar.token()
    expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
    expectError(await sidecar.request({ token, body: 'x' }), 500, 'upstream_unavailable')
    await startDevice(undefined, { port })
    expect((await sidecar.request({ token })).text).toBe('from the device')
  })

  it.each([
    ['closes the connection', (peer: RawPeer) => peer.end()],
    ['resets the connection', (peer: RawPeer) => peer.reset()],
    ['closes the connection within the head', (peer: RawPeer) => peer.end('HTTP/1.1 200 O')],
  ])(
    'C24 a device that %s before its response head ends is 500, and no request is repeated',
    async (_name, drop) => {
      const device = await startScripted(async (peer) => {
        await nextRequest(peer)
        drop(peer)
      })
      const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
      const token = await sidecar.token()
      expectError(await sidecar.request({ token }), 500, 'upstream_unavailable')
      expectError(await sidecar.request({ token, body: 'x' }), 500, 'upstream_unavailable')
      expect(device.peers).toHaveLength(2)
    },
  )

  it.each([
    ['a length, FIN', 'Content-Length: 1000\r\n\r\nonly this', (peer: RawPeer) => peer.end()],
    ['a length, RST', 'Content-Length: 1000\r\n\r\nonly this', (peer: RawPeer) => peer.reset()],
    ['a length, one byte short, FIN', 'Content-Length: 10\r\n\r\nonly this', (peer: RawPeer) => peer.end()],
    ['chunks, FIN', 'Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n', (peer: RawPeer) => peer.end()],
    ['chunks, RST', 'Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n', (peer: RawPeer) => peer.reset()],
    [
      'chunks, FIN within one',
      'Transfer-Encoding: chunked\r\n\r\n99\r\nonly this',
      (peer: RawPeer) => peer.end(),
    ],
    [
      'chunks, only half of the last one',
      'Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n0\r\n',
      (peer: RawPeer) => peer.end(),
    ],
    ['until the close, RST', 'X-A: b\r\n\r\nonly this', (peer: RawPeer) => peer.reset()],
    ['a malformed chunk size', 'Transfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\nzz\r\n', () => {}],
  ])(
    'C24 a body cut by the device is a broken transfer, never a short body that looks whole: %s',
    async (_name, head, cut) => {
      const { device, proceed } = await startCutting(head, cut)
      const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
      const connection = await sidecar.connect()
      const exchange = connection.start({ fields: ['Authorization', `Bearer ${await sidecar.token()}`] })
      await exchange.waitFor('only this').catch(() => {})
      proceed()
      const { partial } = await brokenBy(exchange)
      expect([partial?.status, partial?.text]).toEqual([200, 'only this'])
      expect((await sidecar.request()).status, 'the sidecar still serves').toBe(401)
      await expect.poll(() => sidecar.metric('postern_upstream_errors_total')).toBe(1)
    },
  )

  it('C24 a response whose body stalls is broken off at the deadline', async () => {
    const device = await startScripted(async (peer) => {
      await nextRequest(peer)
      peer.write('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this')
    })
    const sidecar = await startSidecar({ transport, device })
    const connection = await sidecar.connect()
    const exchange = connection.start({ fields: ['Authorization', `Bearer ${await sidecar.token()}`] })
    await exchange.waitFor('only this')
    await sidecar.clock.advance(IDLE_TIMEOUT - 1)
    expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
    await sidecar.clock.advance(1)
    expect((await brokenBy(exchange)).partial?.text).toBe('only this')
  })

  it('C24 a response with endless chunk extensions and no data is broken off at the deadline', async () => {
    const device = await startScripted(async (peer) => {
      await nextRequest(peer)
      peer.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n1;')
    })
    const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
    const connection = await sidecar.connect()
    const exchange = connection.start({ fields: ['Authorization', `Bearer ${await sidecar.token()}`] })
    await exchange.waitFor('only this')
    for (let i = 0; i < 6; i += 1) {
      expect(await sidecar.metric('postern_upstream_errors_total')).toBe(0)
      device.peers[0]?.write('x')
      await sidecar.clock.advance(IDLE_TIMEOUT / 6)
    }
    expect((await brokenBy(exchange)).partial?.text).toBe('only this')
  })

  it.each(['HTTP/2.0', 'HTTP/0.9'])(
    'C24 a response that claims to be %s is 500 with the strict parser',
    async (version) => {
      const device = await startScripted(async (peer) => {
        await nextRequest(peer)
        peer.write(`${version} 200 OK\r\nContent-Length: 2\r\n\r\nhi`)
      })
      const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
      const response = await sidecar.request({ token: await sidecar.token() })
      expectError(response, 500, 'upstream_unavailable')
      expect(response.header('Proxy-Status')).toBe('postern; error=http_protocol_error')
    },
  )

  it('C24 a broken response leaves other responses whole, also on the same HTTP/2 connection', async () => {
    const device = await startDevice((incoming, response) => {
      if (incoming.url !== '/cut') {
        response.end('whole')
        return
      }
      response.writeHead(200, { 'Content-Length': 1000 })
      response.write('only this', () => response.destroy())
    })
    const sidecar = await startSidecar({ transport, device })
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`]
    const connections = await Promise.all(Array.from({ length: 6 }, () => sidecar.connect()))
    await Promise.all(
      connections.map(async (connection, i) => {
        const path = i % 2 === 0 ? '/cut' : '/whole'
        const exchange = connection.start({ fields, path })
        if (path === '/cut') await brokenBy(exchange)
        else expect((await exchange.response).text).toBe('whole')
      }),
    )
    if (transport !== 'h2') return
    // In HTTP/2 only the stream breaks, not the connection.
    const [one] = connections
    if (one === undefined) throw new Error('there are six')
    const cut = one.start({ fields, path: '/cut' })
    const whole = one.start({ fields, path: '/whole' })
    await brokenBy(cut)
    expect((await whole.response).text).toBe('whole')
    expect((await one.send({ fields, path: '/whole' })).text).toBe('whole')
  })

  it('C24 a response that comes before the upload has ended reaches the client', async () => {
    const device = await startDevice((_incoming, response) => {
      response.writeHead(413, { Connection: 'close' })
      response.end('too much')
    })
    const sidecar = await startSidecar({ transport, device })
    const connection = await sidecar.connect()
    const fields = ['Authorization', `Bearer ${await sidecar.token()}`, 'Content-Length', '1000']
    const exchange = connection.start({ method: 'POST', fields, open: true })
    exchange.write('some of it')
    expect(await exchange.response).toMatchObject({ status: 413, text: 'too much' })
    expect((await sidecar.request()).status).toBe(401)
  })
})
