import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import net, { connect, createServer, type Socket } from 'node:net'
import process from 'node:process'
import tls from 'node:tls'
import { expect } from 'vitest'
import { closeLater } from './cleanup.ts'

/** One end of a TCP or TLS connection for hand-written bytes. Text is latin1: one character is one byte. */
export interface RawPeer {
  readonly socket: net.Socket
  /** Everything received so far. */
  readonly received: string
  /** Resolves with everything received when the connection is closed, cleanly or not. */
  readonly closed: Promise<string>
  /** The error that broke the connection, if there was one. */
  readonly error: Error | undefined
  write(data: string | Buffer): void
  /** Waits until the received text contains (or matches) the pattern, and resolves with everything received so far. */
  waitFor(pattern: string | RegExp): Promise<string>
  /** Forgets what was received, so that the next `waitFor` sees only new bytes. */
  forget(): void
  /** Sends FIN. */
  end(data?: string | Buffer): void
  /** Sends RST. */
  reset(): void
}

/** Wraps a socket. The caller closes it. `wire` is the TCP socket that carries a TLS socket. */
export function rawPeer(socket: net.Socket, wire: net.Socket = socket): RawPeer {
  let text = ''
  /** Received after `text`. Converted only on demand, because the HTTP clients of the tests read the bytes themselves. */
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
    waitFor(pattern) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const found = holds(pattern)
          if (!found && !socket.destroyed) return
          looks.delete(look)
          if (found) resolve(text)
          else reject(new Error(`closed before ${String(pattern)}; received: ${JSON.stringify(received())}`))
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
      // A TLS socket closes with its wire. Destroying both in one callback crashes the process (Node 26.10: SIGSEGV).
      wire.resetAndDestroy()
    },
  }
}

/**
 * The TLS context of every test client. Without it, Node makes one per connection, which takes half a millisecond. A handshake with
 * ML-KEM, the default, takes a fifth more; clients of other programs have it.
 */
export const clientContext: tls.SecureContext = tls.createSecureContext({ ecdhCurve: 'X25519' })

/**
 * Opens a connection for hand-written bytes, over TLS if the URL is https. It is closed when the test ends.
 * @param options.alpn the protocols to offer; default: HTTP/1.1 alone
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
  await new Promise<void>((resolve, reject) => {
    socket.once(secure ? 'secureConnect' : 'connect', resolve)
    // The end of a test closes a connection that it is still opening, which is no error of the socket.
    socket.once('close', () => reject(peer.error ?? new Error('the connection closed before it was open')))
  })
  return peer
}

/**
 * The kernel hands out ephemeral ports from 32768 up, also for each connection that a test opens. So no process takes one of these by
 * chance while the server on it stops and starts again.
 */
const PORTS = { from: 10_000, to: 30_000 }

/** Ports that this process got. Each looks unused until its program listens, so a second program could get it, too. */
const handedOut = new Set<number>()

/**
 * A random port of 127.0.0.1 that no socket holds, and that this process did not get before. Until the test ends, no other process gets it
 * here, also while nothing listens on it.
 *
 * @param forNode a server of Node listens there: it does not mind connections that are over (see `isHeld`), whose table takes long to read
 */
export async function unusedPort({
  from = PORTS.from,
  to = PORTS.to,
  forNode = false,
}: Partial<typeof PORTS> & { readonly forNode?: boolean } = {}): Promise<number> {
  for (;;) {
    const port = randomInt(from, to)
    if (handedOut.has(port) || (!forNode && isHeld(port))) continue
    // Linux alone has names of sockets without a file. They end with their process.
    const claim = isLinux ? await listening({ path: `\0postern-test-port-${port}` }) : undefined
    if (isLinux && claim === undefined) continue
    const probe = await listening({ port, host: '127.0.0.1' })
    if (probe === undefined) {
      claim?.close()
      continue
    }
    probe.close()
    await once(probe, 'close')
    handedOut.add(port)
    claim?.unref()
    closeLater(() => void claim?.close())
    return port
  }
}

const isLinux = process.platform === 'linux'

/** A server that listens there; undefined if another one does. */
async function listening(place: net.ListenOptions): Promise<net.Server | undefined> {
  const server = net.createServer().listen(place)
  return new Promise((resolve) => {
    server.once('listening', () => resolve(server)).once('error', () => resolve(undefined))
  })
}

/** The kernel's tables of sockets, on Linux only. They name the peers' ports too, so a port may pass for held that is not. */
const SOCKETS = ['/proc/net/tcp', '/proc/net/tcp6']

/**
 * Whether a socket of this machine holds the port, also one whose connection is over (TIME_WAIT). Node can listen there, because it sets
 * SO_REUSEADDR. A server that does not, such as fcgiwrap, can't.
 */
export function isHeld(port: number): boolean {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')} `
  return SOCKETS.some((table) => existsSync(table) && readFileSync(table, 'latin1').includes(local))
}

/** Connects, sends and resets, in another process: a server in this process accepts only afterwards. */
export function sendAndReset(url: string, bytes: string): void {
  const { hostname: host, port } = new URL(url)
  const script = `
    const socket = require('node:net').connect({ host: '${host}', port: ${port} }, () =>
      socket.write(${JSON.stringify(bytes)}, () => socket.resetAndDestroy()))`
  expect(spawnSync(process.execPath, ['-e', script]).status).toBe(0)
}

/** Both ends of a TCP connection; `to` reads nothing until the test resumes it. */
export async function socketPair(): Promise<{ readonly from: Socket; readonly to: Socket }> {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const from = connect(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1')
  const [to] = (await once(server, 'connection')) as [Socket]
  closeLater(() => {
    from.destroy()
    to.destroy()
    server.close()
  })
  return { from, to }
}
