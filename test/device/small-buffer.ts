import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { closeLater } from '../support/cleanup.ts'

/**
 * A device whose TLS has no room for a long first message: it passes a connection on to `port` if it `takes` a message of this length (bytes),
 * and otherwise closes it, or stays silent.
 * @param onSilent called for each message that gets no answer
 */
export async function startSmallBuffer(
  port: number,
  takes: (length: number) => boolean,
  otherwise: 'closes' | 'is silent',
  onSilent: () => void = () => {},
): Promise<{ readonly url: string }> {
  const device = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (hello) => {
      if (takes(hello.length)) {
        const served = connect(port, '127.0.0.1').on('error', () => {})
        served.write(hello)
        socket.pipe(served).pipe(socket)
      } else if (otherwise === 'closes') socket.destroy()
      else onSilent()
    })
    closeLater(() => void socket.destroy())
  })
  closeLater(() => void device.close())
  await once(device.listen(0, '127.0.0.1'), 'listening')
  return { url: `https://127.0.0.1:${(device.address() as AddressInfo).port}` } // listening on TCP
}
