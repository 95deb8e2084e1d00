import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { beginStop } from '../support/waiting.ts'

/** Opens a connection whose upload is refused and whose client goes on sending. */
async function keepSending(sidecar: TestSidecar): Promise<RawPeer> {
  const raw = await rawConnection(sidecar.url, { localAddress: '127.0.0.2' })
  raw.socket.allowHalfOpen = true
  raw.write('POST /x HTTP/1.1\r\nHost: device\r\nContent-Length: 10000000000\r\n\r\n')
  await raw.waitFor('invalid_token')
  const drip = sidecar.clock.every(50, () => raw.socket.write('x'))
  void raw.closed.then(drip.cancel)
  return raw
}

describeTransports(
  'Lingering connections',
  (transport) => {
    it('H98 count as open connections in caps and metrics, and other clients are served', async () => {
      const config = { listen: { max_connections: 12, max_connections_per_client: 3 } }
      const sidecar = await startSidecar({ transport, config })
      const all = [await keepSending(sidecar), await keepSending(sidecar), await keepSending(sidecar)]
      const fourth = await rawConnection(sidecar.url.replace('https:', 'http:'), {
        localAddress: '127.0.0.2',
      })
      expect(await fourth.closed).toBe('')
      expect(await sidecar.metric('postern_connections')).toBe(3)
      expect(
        await sidecar.metric('postern_connections_refused_total', { reason: 'max_connections_per_client' }),
      ).toBe(1)
      expect((await sidecar.request({ token: await sidecar.token() })).status).toBe(200)
      for (const raw of all) raw.end()
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    })

    it('H98 do not delay a stop', async () => {
      const sidecar = await startSidecar({ transport })
      const all = [await keepSending(sidecar), await keepSending(sidecar)]
      // Much shorter than the grace, and than the rest of their 30 s of lingering.
      const { stopped } = await beginStop(sidecar, 60_000)
      await sidecar.clock.advance(1_000)
      await stopped
      // The next bytes of each client find its connection closed.
      await passUntil(sidecar.clock, Promise.all(all.map(({ closed }) => closed)))
    })
  },
  ['http1', 'tls'],
)
