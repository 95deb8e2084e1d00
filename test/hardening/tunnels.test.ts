import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

const MiB = 1 << 20
const FRAMES = 48
/** Upper bound (bytes) on what kernel buffers and streams on both connections of a tunnel hold. */
const BUFFERED = 24 * MiB

describeTransports(
  'A WebSocket tunnel',
  (transport) => {
    async function openTunnel(
      config: YamlPart = {},
    ): Promise<{ client: WebSocket; device: WebSocket; expectGone: () => Promise<void> }> {
      const device = await startDevice()
      const taken = acceptWebSockets(device, () => {})
      const sidecar = await startSidecar({ transport, device, config })
      const { socket: client } = await openWebSocket(sidecar.url, { token: await sidecar.token() })
      const [other] = taken.sockets
      if (other === undefined) throw new Error('the device has no WebSocket')
      return {
        client,
        device: other,
        async expectGone() {
          await device.waitForOpenConnections(0)
          await expect.poll(() => sidecar.metric('postern_tunnels')).toBe(0)
        },
      }
    }

    it('C23 that carries nothing for idle_timeout is closed on both sides', async () => {
      const start = performance.now()
      const { client, device, expectGone } = await openTunnel({ upstream: { idle_timeout: '300ms' } })
      await Promise.all([once(client, 'close'), once(device, 'close')])
      expect(performance.now() - start).toBeGreaterThan(250)
      await expectGone()
    })

    it('C23 that carries pings from one side alone outlives one that is idle', async () => {
      await Promise.all(
        (['client', 'device'] as const).map(async (talker) => {
          const device = await startDevice()
          const taken = acceptWebSockets(device, () => {})
          const sidecar = await startSidecar({
            transport,
            device,
            config: { upstream: { idle_timeout: '2s' } },
          })
          const token = await sidecar.token()
          const { socket: talking } = await openWebSocket(sidecar.url, { token })
          const [atDevice] = taken.sockets
          const { socket: idle } = await openWebSocket(sidecar.url, { token })
          const pings = setInterval(() => (talker === 'client' ? talking : atDevice)?.ping(), 50)
          closeLater(() => clearInterval(pings))
          await once(idle, 'close')
          expect(talking.readyState).toBe(talking.OPEN)
          clearInterval(pings)
          await once(talking, 'close')
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
      // Waits until the writer's buffer stays the same for 300 ms.
      let before = Number.NaN
      while (ends[writer].bufferedAmount !== before) {
        before = ends[writer].bufferedAmount
        await delay(300)
      }
      expect(FRAMES * MiB - before).toBeLessThan(BUFFERED)
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
