import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { it } from 'vitest'
import type { Exchange, UpgradeExchange } from '../../src/http/exchange.ts'
import { closeLater } from '../support/cleanup.ts'
import { startDevice } from '../support/device.ts'
import { startHttp1Server } from '../support/http1-server.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

/** The next socket that a server of this process accepts. */
function nextAccepted(): Promise<Socket> {
  const accepted = Promise.withResolvers<Socket>()
  const pass = (message: unknown): void => accepted.resolve((message as { readonly socket: Socket }).socket)
  subscribe('net.server.socket', pass)
  closeLater(() => void unsubscribe('net.server.socket', pass))
  return accepted.promise
}

/**
 * Sends to a client that reads nothing until bytes wait for it in `socket`, and then one byte more whenever the idle timer of the
 * socket has fired. Resolves when the socket is closed.
 */
async function trickle(socket: Socket, send: (bytes: Buffer) => void): Promise<void> {
  while (socket.writableLength === 0) {
    send(Buffer.alloc(1024))
    await turn()
  }
  socket.on('timeout', () => process.nextTick(send, Buffer.alloc(1)))
  if (!socket.destroyed) await once(socket, 'close')
}

it('a client that reads nothing of a response is dropped after idle_timeout, although the device sends more', async () => {
  const begun = Promise.withResolvers<Exchange | UpgradeExchange>()
  const url = await startHttp1Server(begun.resolve, { idleTimeout: 0 })
  const accepted = nextAccepted()
  const client = await rawConnection(url)
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const exchange = await begun.promise
  client.socket.pause()
  exchange.begin({ status: 200, reason: '', fields: [] })
  await trickle(await accepted, (bytes) => void exchange.write(bytes))
})

it('a tunnel whose client reads nothing is closed after tunnel_idle_timeout, although the device sends more', async () => {
  const device = await startDevice()
  const { sockets } = acceptWebSockets(device)
  const sidecar = await startSidecar({ device, config: { upstream: { tunnel_idle_timeout: '300ms' } } })
  const token = await sidecar.token()
  const accepted = nextAccepted()
  const { socket } = await openWebSocket(sidecar.url, { token })
  socket.pause()
  await trickle(await accepted, (bytes) => sockets[0]?.send(bytes))
})
