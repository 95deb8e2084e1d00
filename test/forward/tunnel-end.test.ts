import { once } from 'node:events'
import net from 'node:net'
import { expect, it } from 'vitest'
import { TunnelEnd } from '../../src/forward/tunnel-end.ts'
import { startRawDevice } from '../support/raw-device.ts'

it('H257 an end of a tunnel keeps what came before its socket closed, until it is read', async () => {
  const device = await startRawDevice(async (peer) => peer.end('last bytes'))
  const socket = net.connect(Number(new URL(device.url).port), '127.0.0.1')
  const closed = once(socket, 'close')
  const end = new TunnelEnd(socket.pause(), 'drops')
  end.join(Buffer.from('first, '))
  await closed
  expect(end.destroyed).toBe(false)
  const pieces: Buffer[] = []
  for await (const piece of end) pieces.push(piece)
  expect(Buffer.concat(pieces).toString()).toBe('first, last bytes')
  expect(end.destroyed).toBe(true)
})

it('H255 an end of a tunnel closes with its socket, though bytes for the socket are left', async () => {
  const device = await startRawDevice((peer) => {
    peer.socket.pause()
    peer.end()
  })
  const socket = net.connect(Number(new URL(device.url).port), '127.0.0.1')
  const end = new TunnelEnd(socket.pause(), 'drops')
  end.join()
  // More than the buffers of the kernel take.
  for (let i = 0; i < 32; i += 1) end.write(Buffer.alloc(1 << 20))
  const closed = once(end, 'close')
  await once(end.resume(), 'end')
  socket.destroy()
  await closed
})

it('an end of a tunnel that fails closes, and its failure ends nothing else', async () => {
  const device = await startRawDevice(() => {})
  const socket = net.connect(Number(new URL(device.url).port), '127.0.0.1')
  const end = new TunnelEnd(socket.pause(), 'drops')
  end.join()
  const closed = Promise.all([once(socket, 'close'), new Promise((resolve) => end.once('close', resolve))])
  end.destroy(new Error('written after its end'))
  await closed
})
