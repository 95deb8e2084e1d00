import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { WebSocket } from 'ws'
import { startDevice } from '../support/device.ts'
import { startSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

const MiB = 1 << 20
const FRAMES = 48
/** What may stand in the kernel's buffers and in streams, on both connections of a tunnel. */
const IN_BETWEEN = 24 * MiB

describeTransports(
  'A WebSocket tunnel',
  (transport) => {
    async function open(
      config: YamlPart = {},
    ): Promise<{ client: WebSocket; device: WebSocket; gone: () => Promise<void> }> {
      const device = await startDevice()
      const taken = acceptWebSockets(device, () => {})
      const sidecar = await startSidecar({ transport, device, config })
      const { socket: client } = await openWebSocket(sidecar.url, { token: await sidecar.token() })
      const [other] = taken.sockets
      if (other === undefined) throw new Error('the upgrade went through it')
      return {
        client,
        device: other,
        async gone() {
          await device.waitForOpenConnections(0)
          await expect.poll(() => sidecar.metric('postern_tunnels')).toBe(0)
        },
      }
    }

    it('C23 that is silent for idle_timeout is closed, towards both sides', async () => {
      const { client, device, gone } = await open({ upstream: { idle_timeout: '300ms' } })
      const start = performance.now()
      await Promise.all([once(client, 'close'), once(device, 'close')])
      expect(performance.now() - start).toBeGreaterThan(250)
      await gone()
    })

    it('C23 that carries anything at all, from either side alone, is not idle', async () => {
      await Promise.all(
        (['client', 'device'] as const).map(async (talker) => {
          const ends = await open({ upstream: { idle_timeout: '600ms' } })
          const closed = once(ends.client, 'close')
          for (let i = 0; i < 8; i += 1) {
            ends[talker].ping()
            await delay(150)
          }
          expect(ends.client.readyState).toBe(ends.client.OPEN)
          await closed
          await ends.gone()
        }),
      )
    })

    it.each([
      ['client', 'device'],
      ['device', 'client'],
    ] as const)(
      'C21 whose %s does not read stalls the %s, not memory, and loses nothing',
      async (reader, writer) => {
        const ends = await open()
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
        // Until it stands still: what was going to leave the writer has left.
        let before = Number.NaN
        while (ends[writer].bufferedAmount !== before) {
          before = ends[writer].bufferedAmount
          await delay(300)
        }
        expect(FRAMES * MiB - before).toBeLessThan(IN_BETWEEN)
        ends[reader].resume()
        await all
        const closing = once(ends[reader], 'close')
        ends[writer].close(1000, 'all of it')
        expect((await closing)[0]).toBe(1000)
        await ends.gone()
      },
    )
  },
  ['tls'],
)
