import { once } from 'node:events'
import net, { type Socket } from 'node:net'
import { closeLater } from '../support/cleanup.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const LONG = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun'
const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nbegun'

/** What the device does with a request, by the last segment of the request's path. */
export const behaviours: Readonly<Record<string, (socket: Socket) => unknown>> = {
  responds: (socket) => socket.write(OK),
  silent: () => {},
  resets: (socket) => socket.resetAndDestroy(),
  closes: (socket) => socket.end(),
  'closes-in-head': (socket) => socket.end('HTTP/1.1 200 O'),
  begins: (socket) => socket.write(LONG),
  'closes-in-body': (socket) => socket.end(LONG),
  'resets-in-body': (socket) => socket.write(LONG, () => socket.resetAndDestroy()),
  malformed: (socket) => socket.write('HTTP/1.1 200 OK\r\nno field\r\nContent-Length: 2\r\n\r\nok'),
  garbage: (socket) => socket.write('no HTTP\r\n\r\n'),
  'bad-chunk': (socket) => socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'),
  'refuses-early': (socket) => socket.write('HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno'),
  switches: (socket) => socket.write(SWITCHED),
  'switches-and-closes': (socket) => socket.end(SWITCHED),
  'switches-and-resets': (socket) => socket.write(SWITCHED, () => socket.resetAndDestroy()),
  'switches-to-another': (socket) => socket.write(SWITCHED.replace('websocket', 'other')),
}

/**
 * Starts a device that behaves as the path of a request says and keeps nothing of it. A path without a behaviour throws:
 * its case would test nothing. Closed when the test, or the file, ends.
 */
export async function startBehavingDevice(): Promise<{ readonly url: string }> {
  const open = new Set<Socket>()
  const server = net.createServer((socket) => {
    open.add(socket.on('error', () => {}).once('close', () => open.delete(socket)))
    socket.on('data', (bytes) => {
      const [, name] = /^[A-Z]+ \S*\/(\S*) HTTP/.exec(bytes.toString('latin1')) ?? []
      if (name === undefined) return // a further piece of a request
      const behave = behaviours[name]
      if (behave === undefined) throw new Error(`no such behaviour: ${name}`)
      behave(socket)
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
