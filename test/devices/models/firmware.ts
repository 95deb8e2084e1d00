import { once } from 'node:events'
import net from 'node:net'

/** The head of a request, as a device sees it. */
export interface Head {
  readonly method: string
  readonly target: string
  readonly version: string
  /** The head as it came, with its empty line. */
  readonly text: string
  /** The value of the field with exactly this name; with `i` in any case. */
  field(name: string, flags?: 'i'): string | undefined
}

/** One connection of a client to a device. */
export interface Line {
  readonly socket: net.Socket
  /** The next head; undefined when the client has ended the connection. */
  head(): Promise<Head | undefined>
  /** The next bytes of a body; fewer when the client ends the connection. */
  body(length: number): Promise<Buffer>
  /** All that has arrived and is not read. */
  rest(): Buffer
  send(text: string): void
  end(text?: string): void
  /** Sends RST. */
  reset(): void
}

export interface RunningModel {
  readonly url: string
  stop(): Promise<void>
}

/** A model of a device. Run as a program, it listens on port 8080. */
export interface Model {
  /** Listens on 127.0.0.1, on any free port by default. */
  start(port?: number): Promise<RunningModel>
}

/**
 * Makes a model out of what it does with each connection.
 * @param meta `import.meta` of the model's module
 * @param create is called once for each running device, and returns what the device does with a connection
 */
export function model(meta: ImportMeta, create: () => (line: Line) => unknown): Model {
  async function start(port = 0): Promise<RunningModel> {
    const onLine = create()
    const open = new Set<net.Socket>()
    const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      open.add(socket)
      socket.once('close', () => open.delete(socket))
      // A client that leaves while the device waits for its bytes ends the script of the device.
      Promise.resolve(onLine(createLine(socket))).catch(() => socket.destroy())
    })
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address() as net.AddressInfo // a TCP server's address is never a string
    return {
      url: `http://127.0.0.1:${address.port}`,
      async stop() {
        server.close()
        for (const socket of open) socket.destroy()
        await once(server, 'close')
      },
    }
  }
  if (meta.main) start(8080).then(({ url }) => process.stdout.write(`${url}\n`))
  return { start }
}

/** A complete response with a length. */
export function response(body: string, fields = '', status = '200 OK'): string {
  return `HTTP/1.1 ${status}\r\n${fields}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

function createLine(socket: net.Socket): Line {
  let buffer = Buffer.alloc(0)
  let ended = false
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    buffer = Buffer.concat([buffer, chunk])
    socket.emit('more')
  })
  for (const event of ['end', 'close']) {
    socket.once(event, () => {
      ended = true
      socket.emit('more')
    })
  }
  const take = (length: number): Buffer => {
    const taken = buffer.subarray(0, length)
    buffer = buffer.subarray(taken.length)
    return taken
  }
  return {
    socket,
    async head() {
      for (;;) {
        const end = buffer.indexOf('\r\n\r\n')
        if (end !== -1) return headOf(take(end + 4).toString('latin1'))
        if (ended) return socket.end() && undefined
        await once(socket, 'more')
      }
    },
    async body(length) {
      while (buffer.length < length && !ended) await once(socket, 'more')
      return take(length)
    },
    rest: () => take(buffer.length),
    send: (text) => void socket.write(text, 'latin1'),
    end: (text = '') => void socket.end(text, 'latin1'),
    reset: () => void socket.resetAndDestroy(),
  }
}

function headOf(text: string): Head {
  const [, method = '', target = '', version = ''] = /^(\S+) (\S+) HTTP\/(\S+)/.exec(text) ?? []
  const field = (name: string, flags?: 'i'): string | undefined =>
    new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*\\r$`, `m${flags ?? ''}`).exec(text)?.[1]
  return { method, target, version, text, field }
}
