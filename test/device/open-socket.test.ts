import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { expect, it } from 'vitest'
import { createSocketOpener } from '../../src/device/open-socket.ts'
import { deviceTls } from '../../src/device/target.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'

/** A connection, the end of the device, and the events of ours as text. */
async function connected(tls: TlsOptions | undefined) {
  // Nagle's algorithm would delay the response until the handshake is acknowledged, and a reset discards it.
  const server = tls === undefined ? createServer() : createTlsServer({ ...tls, noDelay: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number } // listening on TCP
  const connection = once(server, 'connection')
  const accepted = tls === undefined ? connection : once(server, 'secureConnection')
  const origin = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
  const openSocket = createSocketOpener({
    origin,
    socketPath: undefined,
    tls: deviceTls({ insecure: true }),
    reuse: 'shared',
    parser: 'strict',
  })
  const events: string[] = []
  const opened = Promise.withResolvers<void>()
  const socket = openSocket(opened.resolve, {
    takesLarge: false,
    midResponse: true,
    received(bytes, length) {
      events.push(bytes.toString('latin1', 0, length))
      return 'small'
    },
  })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', (error) => events.push(error.message))
  socket.on('end', () => events.push(socket.destroyed ? 'reset' : 'end'))
  const [[rawSocket], [device]] = (await Promise.all([connection, accepted])) as [[Socket], [Socket]]
  await opened.promise
  device.on('error', () => {})
  closeLater(() => {
    socket.destroy()
    device.destroy()
    server.close()
  })
  return { socket, device, rawSocket, events, closed }
}

const TRANSPORTS = [
  ['cleartext', async () => undefined],
  ['TLS', () => makeCertificate()],
] as const

/** Sends a response that stays in the receive buffer of the kernel. */
async function respondUnread(device: Socket, socket: Socket): Promise<void> {
  socket.pause()
  await new Promise((resolve) => device.write('413', resolve))
}

/** The first write triggers a reset, and the second one fails with it. */
async function writeUntilReset(socket: Socket): Promise<void> {
  for (let i = 0; i < 3; i += 1) {
    await new Promise((resolve) => socket.write('more of the upload', resolve))
    await nextTurn()
  }
  socket.resume()
}

it.each(TRANSPORTS)(
  'H56 a response is read although the device reset the connection: %s',
  async (_name, tls) => {
    const { socket, device, rawSocket, events, closed } = await connected(await tls())
    await respondUnread(device, socket)
    rawSocket.resetAndDestroy()
    await writeUntilReset(socket)
    await closed
    expect(events).toEqual(['413', 'reset'])
  },
)

it.each(TRANSPORTS)(
  'H56 a response is read although the device closed the connection: %s',
  async (_name, tls) => {
    const { socket, device, rawSocket, events, closed } = await connected(await tls())
    await respondUnread(device, socket)
    rawSocket.destroy()
    await writeUntilReset(socket)
    await closed
    expect(events).toEqual(['413', 'end'])
  },
)
