import { once } from 'node:events'
import net, { type Socket } from 'node:net'
import { closeLater } from '../support/cleanup.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const LONG = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun'
const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbegun'

/** What the device does with a request, by the last segment of its path. */
export const manners: Readonly<Record<string, (socket: Socket) => unknown>> = {
  answers: (socket) => socket.write(OK),
  thinks: () => {},
  resets: (socket) => socket.resetAndDestroy(),
  leaves: (socket) => socket.end(),
  'leaves-amid-head': (socket) => socket.end('HTTP/1.1 200 O'),
  begins: (socket) => socket.write(LONG),
  'leaves-amid-body': (socket) => socket.end(LONG),
  'resets-amid-body': (socket) => socket.write(LONG, () => socket.resetAndDestroy()),
  malformed: (socket) => socket.write('HTTP/1.1 200 OK\r\nno field\r\nContent-Length: 2\r\n\r\nok'),
  garbage: (socket) => socket.write('no HTTP\r\n\r\n'),
  'bad-chunk': (socket) => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'),
  'refuses-early': (socket) => socket.write('HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno'),
  switches: (socket) => socket.write(SWITCHED),
  'switches-and-leaves': (socket) => socket.end(SWITCHED),
  'switches-and-resets': (socket) => socket.write(SWITCHED, () => socket.resetAndDestroy()),
  'switches-to-what': (socket) => socket.write(SWITCHED.replace('websocket', 'other')),
}

/** A device with manners, that holds on to nothing. Closed when the test, or the file, ends. */
export async function startManneredDevice(): Promise<{ readonly url: string }> {
  const open = new Set<Socket>()
  const server = net.createServer((socket) => {
    open.add(socket.on('error', () => {}).once('close', () => open.delete(socket)))
    socket.on('data', (bytes) => {
      const [, manner = ''] = /^[A-Z]+ \S*\/(\S*) HTTP/.exec(bytes.toString('latin1')) ?? []
      manners[manner]?.(socket)
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as net.AddressInfo // a TCP server's address is never a string
  closeLater(() => {
    server.close()
    for (const socket of open) socket.destroy()
  })
  return { url: `http://127.0.0.1:${port}` }
}
