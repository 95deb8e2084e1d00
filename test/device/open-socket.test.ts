import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { expect, it } from 'vitest'
import { createSocketOpener } from '../../src/device/open-socket.ts'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'

/** A connection of ours, the device's end of it, and what happens to ours, in words. */
async function connected(tls: TlsOptions | undefined) {
  // Nagle's algorithm would keep the answer back behind what the handshake sends, and a reset throws it away.
  const server = tls === undefined ? createServer() : createTlsServer({ ...tls, noDelay: true })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number } // listening on TCP
  const wired = once(server, 'connection')
  const accepted = tls === undefined ? wired : once(server, 'secureConnection')
  const origin = `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`
  const opener = createSocketOpener({
    origin,
    socketPath: undefined,
    ca: undefined,
    insecure: true,
    reuse: 'shared',
    parser: 'strict',
  })
  const events: string[] = []
  const opened = Promise.withResolvers<void>()
  const socket = opener.open(opened.resolve, (bytes, length) => {
    events.push(bytes.toString('latin1', 0, length))
    return false
  })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', (error) => events.push(error.message))
  socket.on('end', () => events.push(socket.destroyed ? 'reset' : 'end'))
  const [[wire], [device]] = (await Promise.all([wired, accepted])) as [[Socket], [Socket]]
  await opened.promise
  device.on('error', () => {})
  closeLater(() => {
    socket.destroy()
    device.destroy()
    server.close()
  })
  return { socket, device, wire, events, closed }
}

const over = [
  ['cleartext', async () => undefined],
  ['TLS', () => makeCertificate()],
] as const

/** The answer is there, and waits in the kernel. */
async function answerUnread(device: Socket, socket: Socket): Promise<void> {
  socket.pause()
  await new Promise((resolve) => device.write('413', resolve))
}

/** Only the second write meets the reset that the first one drew. */
async function writeInVain(socket: Socket): Promise<void> {
  for (let i = 0; i < 3; i += 1) {
    await new Promise((resolve) => socket.write('more of the upload', resolve))
    await new Promise(setImmediate)
  }
  socket.resume()
}

it.each(over)('H56 an answer is read although the device reset the connection: %s', async (_name, tls) => {
  const { socket, device, wire, events, closed } = await connected(await tls())
  await answerUnread(device, socket)
  wire.resetAndDestroy()
  await writeInVain(socket)
  await closed
  expect(events).toEqual(['413', 'reset'])
})

it.each(over)(
  'H56 an answer is read although the device has closed the connection: %s',
  async (_name, tls) => {
    const { socket, device, wire, events, closed } = await connected(await tls())
    await answerUnread(device, socket)
    wire.destroy()
    await writeInVain(socket)
    await closed
    expect(events).toEqual(['413', 'end'])
  },
)
