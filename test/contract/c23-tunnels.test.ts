import { once } from 'node:events'
import { expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import { startDevice } from '../support/device.ts'
import { MOST_BUFFERED } from '../support/kernel-buffers.ts'
import { rawConnection } from '../support/raw.ts'
import { accessLines, explained } from '../support/records.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

const MiB = 1 << 20
/** How long a tunnel may carry nothing (ms). */
const IDLE = 300_000
/** Of one mebibyte each: more than `MOST_BUFFERED`, so that the writer is stalled before the last one. */
const FRAMES = Math.ceil(MOST_BUFFERED / MiB + 4)

describeTransports(
  'A WebSocket tunnel',
  (transport) => {
    async function openTunnel(config: YamlPart = {}): Promise<{
      client: WebSocket
      device: WebSocket
      sidecar: TestSidecar
      expectGone: () => Promise<void>
    }> {
      const device = await startDevice()
      const taken = acceptWebSockets(device, () => {})
      const sidecar = await startSidecar({ transport, device, config })
      const { socket: client } = await openWebSocket(sidecar.url, { token: await sidecar.token() })
      const [other] = taken.sockets
      if (other === undefined) throw new Error('the device has no WebSocket')
      return {
        client,
        device: other,
        sidecar,
        async expectGone() {
          await device.waitForOpenConnections(0)
          await expect.poll(() => sidecar.metric('postern_tunnels')).toBe(0)
        },
      }
    }

    it('C23 that carries nothing for tunnel_idle_timeout is closed on both sides, and the record says so', async () => {
      const { client, device, sidecar, expectGone } = await openTunnel()
      const closed = Promise.all([once(client, 'close'), once(device, 'close')])
      await sidecar.clock.advance(IDLE - 1)
      expect(await sidecar.metric('postern_tunnels')).toBe(1)
      await sidecar.clock.advance(1)
      await closed
      await expectGone()
      const line = accessLines(sidecar).find(({ status }) => status === 101)
      expect(line).toMatchObject({ end: 'cut', ended_for: 'idle', path: '/' })
      expect((await explained(sidecar, '/')).Response).toContain(
        '101, broken off by Postern: no byte passed it for upstream.tunnel_idle_timeout.',
      )
      expect(await sidecar.metric('postern_requests_ended_total', { reason: 'idle' })).toBe(1)
    })

    it('C23 that carries nothing outlives the deadlines of connections and responses', async () => {
      const device = await startDevice((_request, response) => void response.writeHead(200).write('begun'))
      const taken = acceptWebSockets(device)
      const sidecar = await startSidecar({ transport, device })
      const token = await sidecar.token()
      const { socket } = await openWebSocket(sidecar.url, { token })
      // Both begin later than the tunnel, and end by their deadlines.
      const connection = await sidecar.connect()
      const exchange = connection.start({ fields: ['Authorization', `Bearer ${token}`] })
      await exchange.waitFor('begun')
      const idle = await rawConnection(sidecar.url)
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(3)
      const broken = expect(exchange.response).rejects.toThrow()
      await sidecar.clock.advance(60_000)
      await Promise.all([broken, idle.closed])
      expect([socket.readyState, taken.sockets[0]?.readyState]).toEqual([socket.OPEN, socket.OPEN])
      const echo = once(socket, 'message')
      socket.send('still there')
      expect(String((await echo)[0])).toBe('still there')
    })

    it.each(['client', 'device'] as const)('C23 that the %s closes is recorded as complete', async (end) => {
      const ends = await openTunnel()
      ends[end].close()
      await ends.expectGone()
      const line = accessLines(ends.sidecar).find(({ status }) => status === 101)
      expect([line?.end, line?.ended_for]).toEqual([undefined, undefined])
      expect(await ends.sidecar.metric('postern_requests_ended_total', { reason: 'idle' })).toBe(0)
    })

    it('C23 that carries pings from one side alone outlives one that is idle', async () => {
      await Promise.all(
        (['client', 'device'] as const).map(async (talker) => {
          const device = await startDevice()
          const taken = acceptWebSockets(device, () => {})
          const sidecar = await startSidecar({ transport, device })
          const token = await sidecar.token()
          const { socket: talking } = await openWebSocket(sidecar.url, { token })
          const [atDevice] = taken.sockets
          const { socket: idle } = await openWebSocket(sidecar.url, { token })
          const ends = [once(idle, 'close'), once(talking, 'close')]
          for (let half = 1; half <= 2; half += 1) {
            await sidecar.clock.advance(IDLE / 2)
            const from = (talker === 'client' ? talking : atDevice) as WebSocket // the device has both
            from.ping()
            // The answer passes the sidecar, too.
            await once(from, 'pong')
          }
          await ends[0]
          await sidecar.clock.advance(IDLE - 1)
          expect(await sidecar.metric('postern_tunnels')).toBe(1)
          await sidecar.clock.advance(1)
          await ends[1]
          await expect.poll(() => sidecar.metric('postern_tunnels')).toBe(0)
        }),
      )
    })

    it.each([
      ['client', 'device'],
      ['device', 'client'],
    ] as const)('C21 whose %s does not read stalls the %s and loses nothing', async (reader, writer) => {
      const ends = await openTunnel()
      let received = 0
      const all = new Promise<void>((resolve) => {
        ends[reader].on('message', (data: Buffer) => {
          received += data.length
          if (received === FRAMES * MiB) resolve()
        })
      })
      ends[reader].pause()
      const frame = Buffer.alloc(MiB)
      for (let i = 0; i < FRAMES; i += 1) ends[writer].send(frame)
      // Waits until the writer's buffer stays the same while the sidecar serves ten requests.
      let before = Number.NaN
      while (ends[writer].bufferedAmount !== before) {
        before = ends[writer].bufferedAmount
        for (let served = 0; served < 10; served += 1) await ends.sidecar.metrics()
      }
      expect(FRAMES * MiB - before).toBeLessThan(MOST_BUFFERED)
      ends[reader].resume()
      await all
      const closing = once(ends[reader], 'close')
      ends[writer].close(1000, 'all of it')
      expect((await closing)[0]).toBe(1000)
      await ends.expectGone()
    })
  },
  ['tls'],
)
