import { once } from 'node:events'
import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { expectUnharmed } from '../support/expectations.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { type RawDevice, startRawDevice } from '../support/raw-device.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeTransports, rowsOver } from '../support/transports.ts'

const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'

const upgradeRequest = (token: string): string =>
  `GET /ws HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`

/** The moments at which the client closes its sending side. */
const moments = ['in one packet with its head', 'before the device answers'] as const

describeTransports(
  'H59 A client that closes its sending side behind an upgrade,',
  (transport) => {
    async function start(
      device: RawDevice,
      config: YamlPart = {},
    ): Promise<{ sidecar: TestSidecar; client: RawPeer; head: string; expectGone: () => Promise<void> }> {
      const sidecar = await startSidecar({ transport, device, config })
      const client = await rawConnection(sidecar.url)
      return {
        sidecar,
        client,
        head: upgradeRequest(await sidecar.token()),
        async expectGone() {
          await Promise.all(device.peers.map(({ closed }) => closed))
          await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
          expect(await sidecar.metric('postern_tunnels')).toBe(0)
        },
      }
    }

    /** A device that answers when `proceed` is called, and sends `goodbye` when its client has ended. */
    async function answering(response: string): Promise<{ device: RawDevice; proceed: () => void }> {
      const proceed = Promise.withResolvers<void>()
      const device = await startRawDevice(async (peer) => {
        const ended = once(peer.socket, 'end')
        await peer.waitFor('\r\n\r\n')
        await proceed.promise
        peer.write(response)
        await ended
        peer.end('goodbye')
      })
      return { device, proceed: proceed.resolve }
    }

    /** Sends the upgrade and closes the sending side; resolves when the sidecar has had time to read both. */
    async function sendAndEnd(
      { client, head, sidecar }: { client: RawPeer; head: string; sidecar: TestSidecar },
      device: RawDevice,
      early: string,
      moment: (typeof moments)[number],
    ): Promise<void> {
      const finished = once(client.socket, 'finish')
      if (moment === 'before the device answers') client.write(head + early)
      else client.end(head + early)
      const peer = await device.waitForConnection(1)
      await peer.waitFor('\r\n\r\n')
      if (moment === 'before the device answers') client.end()
      await finished
      await sidecar.metric('postern_connections')
    }

    it.each(
      [...moments, 'behind the 101' as const].flatMap((moment) =>
        rowsOver(transport, [
          { moment, early: 'early bytes', parser: 'strict' },
          { moment, early: '', parser: 'tolerant' },
        ]),
      ),
    )(
      'C20 C23 $moment, has a tunnel: "$early" and FIN reach the device, and the device\'s bytes reach the client ($parser)',
      async ({ moment, early, parser }) => {
        const { device, proceed } = await answering(`${SWITCHED}hello, `)
        const run = await start(device, { upstream: { parser } })
        const { client } = run
        if (moment === 'behind the 101') {
          client.write(run.head + early)
          proceed()
          await client.waitFor('hello')
          client.end()
        } else {
          await sendAndEnd(run, device, early, moment)
          proceed()
        }
        expect(await client.closed).toMatch(/^HTTP\/1\.1 101 [\s\S]+\r\n\r\nhello, goodbye$/)
        expect(device.peers.map(({ received }) => received.split('\r\n\r\n')[1])).toEqual([early])
        await run.expectGone()
      },
    )

    it.each(
      moments.flatMap((moment) =>
        rowsOver(transport, [
          ['HTTP/1.1 200 OK\r\nContent-Length: 2', 'no'],
          ['HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked', '2\r\nno\r\n0\r\n\r\n'],
          ['HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\nConnection: close', 'no'],
          ['HTTP/1.0 200 OK\r\nContent-Length: 2', 'no'],
        ]).map(([head = '', body = '']) => ({ moment, head, body })),
      ),
    )('C20 C23 $moment, gets the refusal of the device: $head', async ({ moment, head, body }) => {
      const { device, proceed } = await answering(`${head}\r\n\r\n${body}`)
      const run = await start(device)
      await sendAndEnd(run, device, 'early bytes', moment)
      proceed()
      const status = head.split(' ')[1]
      const all = await run.client.closed
      expect(all).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]+no`))
      expect(all.match(/HTTP\/1/g)).toHaveLength(1)
      await run.expectGone()
    })

    it('C20 C23 gets the response of an HTTP/1.0 device that has no length', async () => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.end('HTTP/1.0 200 OK\r\n\r\nwhat is an upgrade?')
      })
      const { client, head, expectGone } = await start(device)
      client.end(head)
      expect(await client.closed).toMatch(/^HTTP\/1\.1 200 [\s\S]+what is an upgrade\?/)
      await expectGone()
    })

    it.each([
      ['never responds', '', 30_000, /^HTTP\/1\.1 500 /],
      ['never ends its tunnel', SWITCHED, 300_000, /^HTTP\/1\.1 101 /],
      [
        'stalls within its refusal',
        'HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nno',
        60_000,
        /^HTTP\/1\.1 403 /,
      ],
    ])('C24 is closed at the deadline if the device %s', async (_name, response, limit, heard) => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.write(response)
      })
      const { client, head, sidecar } = await start(device)
      client.end(`${head}early bytes`)
      if (response !== '') await client.waitFor('\r\n\r\n')
      const peer = await device.waitForConnection(1)
      await peer.waitFor(response === SWITCHED ? 'early bytes' : '\r\n\r\n')
      await sidecar.clock.advance(limit - 1)
      expect(await sidecar.metric('postern_connections')).toBe(1)
      await sidecar.clock.advance(1)
      expect(await client.closed).toMatch(heard)
      if (!peer.socket.readableEnded) await Promise.race([peer.closed, once(peer.socket, 'end')])
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
      expect(await sidecar.metric('postern_tunnels')).toBe(0)
    })

    it('C24 and has gone altogether: writing the first bytes of the device ends the tunnel', async () => {
      const device = await startRawDevice(async (peer) => {
        await peer.waitFor('\r\n\r\n')
        peer.write(SWITCHED)
      })
      const { client, head, sidecar } = await start(device)
      client.write(head)
      await client.waitFor('101 Switching')
      client.socket.destroy()
      while ((await sidecar.metric('postern_tunnels')) > 0) device.peers[0]?.write('still there?')
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(0)
    })

    it('H60 without a token is refused, and the device hears nothing', async () => {
      const device = await startDevice()
      const sidecar = await startSidecar({ transport, device })
      const client = await rawConnection(sidecar.url)
      client.end(`${upgradeRequest('none')}early bytes`)
      expect(await client.closed).toMatch(/^HTTP\/1\.1 401 /)
      expect(device.byteCount).toBe(0)
      await expectUnharmed(sidecar, await sidecar.token())
    })
  },
  ['http1', 'tls'],
)
