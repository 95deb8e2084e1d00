import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { closeLater } from './cleanup.ts'

/**
 * A device whose TLS has room for a first message of `size` bytes: it passes a connection on to `port` if the message is no longer, and
 * otherwise closes it, or stays silent.
 */
export async function startSmallBuffer(
  port: number,
  size: number,
  otherwise: 'closes' | 'is silent',
): Promise<{ readonly url: string }> {
  const device = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (hello) => {
      if (hello.length <= size) {
        const served = connect(port, '127.0.0.1').on('error', () => {})
        served.write(hello)
        socket.pipe(served).pipe(socket)
      } else if (otherwise === 'closes') socket.destroy()
    })
    closeLater(() => void socket.destroy())
  })
  closeLater(() => void device.close())
  await once(device.listen(0, '127.0.0.1'), 'listening')
  return { url: `https://127.0.0.1:${(device.address() as AddressInfo).port}` } // listening on TCP
}
