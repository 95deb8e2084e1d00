import { once } from 'node:events'
import type { Socket } from 'node:net'
import { expect, it } from 'vitest'
import type { Exchange, UpgradeExchange } from '../../src/http/exchange.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { type MovableClock, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { nextAccepted } from '../support/waiting.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import { startStoppableHttp1Server } from './http1-server.ts'

/** Sends to a client that reads nothing, until bytes wait for it in `socket` and the kernel takes no more of them. */
async function fill(socket: Socket, send: (bytes: Buffer) => void): Promise<void> {
  const taken = (): number => socket.bytesWritten - socket.writableLength
  for (let before = -1; socket.writableLength === 0 || taken() > before; ) {
    before = taken()
    if (socket.writableLength === 0) send(Buffer.alloc(64 * 1024))
    for (let i = 0; i < 5; i += 1) await nextTurn()
  }
}

/** The client has read nothing for `time` when the socket closes, although a byte more was sent to it again and again. */
async function expectDropped(
  clock: MovableClock,
  socket: Socket,
  time: number,
  send: (bytes: Buffer) => void,
) {
  const step = time / 4
  for (let i = 0; i < 3; i += 1) {
    await clock.advance(step)
    send(Buffer.alloc(1))
  }
  await clock.advance(step - 1)
  expect(socket.destroyed).toBe(false)
  await clock.advance(1)
  expect(socket.destroyed).toBe(true)
}

it('a client that reads nothing of a response is dropped after idle_timeout, although the device sends more', async () => {
  const clock = stillClock()
  const begun = Promise.withResolvers<Exchange | UpgradeExchange>()
  const { url } = await startStoppableHttp1Server(begun.resolve, { idleTimeout: 3_000 }, clock)
  const accepted = nextAccepted()
  const client = await rawConnection(url)
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const exchange = await begun.promise
  client.socket.pause()
  exchange.begin({ status: 200, reason: '', fields: [] })
  // The time is that from the last byte that the client takes, not that from its request.
  await clock.advance(2_500)
  const socket = await accepted
  const send = (bytes: Buffer): void => void exchange.write(bytes)
  await fill(socket, send)
  await expectDropped(clock, socket, 4_000, send)
  // A reset frees what the kernel has queued for the client.
  const broken = once(client.socket, 'error')
  client.socket.resume()
  expect(await broken).toMatchObject([{ code: 'ECONNRESET' }])
})

it('a tunnel whose client reads nothing is closed after tunnel_idle_timeout, although the device sends more', async () => {
  const clock = stillClock()
  const device = await startDevice()
  const { sockets } = acceptWebSockets(device)
  const sidecar = await startSidecar({ clock, device, config: { upstream: { tunnel_idle_timeout: '4s' } } })
  const token = await sidecar.token()
  const accepted = nextAccepted()
  const client = await openWebSocket(sidecar.url, { token })
  client.socket.pause()
  const socket = await accepted
  await clock.advance(2_500)
  const send = (bytes: Buffer): void => void sockets[0]?.send(bytes)
  await fill(socket, send)
  await expectDropped(clock, socket, 4_000, send)
})
