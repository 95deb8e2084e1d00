import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import tls from 'node:tls'
import { closeLater } from './cleanup.ts'

/** One end of a TCP or TLS connection, spoken by hand. Text is latin1: one character is one byte. */
export interface RawPeer {
  readonly socket: net.Socket
  /** Everything received so far. */
  readonly received: string
  /** Resolves with everything received once the connection is closed, however it was closed. */
  readonly closed: Promise<string>
  /** What broke the connection, if anything did. */
  readonly error: Error | undefined
  write(data: string | Buffer): void
  /** Waits until the text (or a match) has been received, and resolves with everything received by then. */
  waitFor(pattern: string | RegExp, timeout?: number): Promise<string>
  /** Forgets what was received, so that the next `waitFor` sees only what is new. */
  forget(): void
  /** Sends FIN: nothing more comes from this side. */
  end(data?: string | Buffer): void
  /** Sends RST. */
  reset(): void
}

/** Reads a socket by hand. The caller closes it. `wire` is what carries its bytes: itself in cleartext. */
export function rawPeer(socket: net.Socket, wire: net.Socket = socket): RawPeer {
  let text = ''
  /** What came behind `text`. Made text only when somebody looks: an HTTP client here reads the bytes by itself. */
  let unread: Buffer[] = []
  let error: Error | undefined
  const looks = new Set<() => void>()
  const check = (): void => {
    for (const look of looks) look()
  }
  function received(): string {
    if (unread.length > 0) {
      text += Buffer.concat(unread).toString('latin1')
      unread = []
    }
    return text
  }
  const closed = new Promise<string>((resolve) => {
    socket.once('close', () => {
      check()
      resolve(received())
    })
  })
  socket.on('data', (chunk: Buffer) => {
    unread.push(chunk)
    check()
  })
  socket.on('error', (cause: Error) => {
    error = cause
  })
  const holds = (pattern: string | RegExp): boolean =>
    typeof pattern === 'string' ? received().includes(pattern) : pattern.test(received())
  return {
    socket,
    get received() {
      return received()
    },
    get error() {
      return error
    },
    closed,
    write(data) {
      socket.write(typeof data === 'string' ? Buffer.from(data, 'latin1') : data)
    },
    waitFor(pattern, timeout = 5000) {
      return new Promise((resolve, reject) => {
        const settle = (): void => {
          clearTimeout(timer)
          looks.delete(look)
        }
        const fail = (why: string): void => {
          settle()
          reject(
            new Error(`${why} while waiting for ${String(pattern)}; received: ${JSON.stringify(received())}`),
          )
        }
        const timer = setTimeout(() => fail(`${timeout} ms passed`), timeout)
        const look = (): void => {
          if (holds(pattern)) {
            settle()
            resolve(text)
          } else if (socket.destroyed) fail('the connection closed')
        }
        looks.add(look)
        look()
      })
    },
    forget() {
      text = ''
      unread = []
    },
    end(data = '') {
      socket.end(typeof data === 'string' ? Buffer.from(data, 'latin1') : data)
    },
    reset() {
      // A TLS socket closes with its wire; to destroy both within one callback ends the process (Node 26.10: SIGSEGV).
      wire.resetAndDestroy()
    },
  }
}

/** The TLS context of every client here. Without one, Node makes a context for each connection, half a millisecond of work. */
export const clientContext: tls.SecureContext = tls.createSecureContext()

/**
 * Opens a connection for hand-typed bytes: over TLS if the URL says https. Closed when the test ends.
 * @param options.alpn the protocols offered; HTTP/1.1 alone unless told
 */
export async function rawConnection(
  url: string,
  options: { readonly alpn?: readonly string[]; readonly localAddress?: string } = {},
): Promise<RawPeer> {
  const { protocol, hostname, port } = new URL(url)
  const target = {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(port),
    ...(options.localAddress === undefined ? {} : { localAddress: options.localAddress }),
  }
  const secure = protocol === 'https:'
  const wire = net.connect(target)
  wire.setNoDelay(true)
  const ALPNProtocols = [...(options.alpn ?? ['http/1.1'])]
  const socket = secure
    ? tls.connect({ socket: wire, secureContext: clientContext, rejectUnauthorized: false, ALPNProtocols })
    : wire
  const forget = closeLater(() => {
    socket.destroy()
  })
  socket.once('close', forget)
  const peer = rawPeer(socket, wire)
  await once(socket, secure ? 'secureConnect' : 'connect')
  return peer
}

/** The kernel gives ports from 32768 on to who asks for any, and to connections. None of those below is taken by chance. */
const PORTS = { from: 10_000, to: 30_000 }

/** A port of 127.0.0.1 on which nothing listens, and which no other test is given meanwhile. */
export async function unusedPort(): Promise<number> {
  for (;;) {
    const server = net.createServer().listen(randomInt(PORTS.from, PORTS.to), '127.0.0.1')
    const listening = await new Promise<boolean>((resolve) => {
      server.once('listening', () => resolve(true)).once('error', () => resolve(false))
    })
    if (!listening) continue
    const { port } = server.address() as net.AddressInfo // a TCP server's address is never a string
    server.close()
    await once(server, 'close')
    return port
  }
}
