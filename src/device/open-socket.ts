import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { UpstreamTarget } from './target.ts'

/**
 * Takes what a connection reads. If they are its `own` it may keep the bytes, provided that there are as many as fit;
 * others are the reader's only until it returns. Returns whether a large body passes.
 */
type TakeBytes = (bytes: Buffer, length: number, own: boolean) => boolean

export interface SocketOpener {
  /**
   * Begins to open a connection; `onOpen` when it is open, and in TLS the device's certificate found good. A socket that
   * is destroyed when it emits `end` was reset.
   */
  open(onOpen: () => void, take?: TakeBytes): Socket
}

/** Unused connections are tried after so long (ms), so that the kernel finds out when the device is gone. */
const PROBE_AFTER = 60_000

const BUFFER_SIZE = 64 * 1024

/** One for all connections; where a large body passes, each of its pieces has one of its own, which saves a copy. */
const BUFFER = Buffer.allocUnsafeSlow(BUFFER_SIZE)

/** Opens connections to the device. Those in TLS take up the session of the one before. */
export function createSocketOpener({ origin, socketPath, ca, insecure }: UpstreamTarget): SocketOpener {
  const { protocol, hostname, port } = new URL(origin)
  const secure = protocol === 'https:'
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const at =
    socketPath === undefined ? { host, port: Number(port) || (secure ? 443 : 80) } : { path: socketPath }
  let session: Buffer | undefined

  function openTls(onOpen: () => void, take: TakeBytes | undefined): Socket {
    const socket = connectTls(
      {
        ...at,
        // Also over a Unix socket: whose certificate is to be shown, and checked. An address is no name (RFC 6066 §3).
        ...(isIP(host) === 0 ? { servername: host } : {}),
        ALPNProtocols: ['http/1.1'],
        rejectUnauthorized: !insecure,
        ...(ca === undefined ? {} : { ca }),
        ...(session === undefined ? {} : { session }),
      },
      onOpen,
    )
    socket.on('session', (latest) => {
      session = latest
    })
    if (take !== undefined) socket.on('data', (bytes: Buffer) => take(bytes, bytes.length, true))
    return socket
  }

  function openPlain(onOpen: () => void, take: TakeBytes | undefined): Socket {
    if (take === undefined) return connect(at, onOpen)
    let next = BUFFER
    const callback = (length: number): boolean => {
      const own = next !== BUFFER
      if (!take(next, length, own)) next = BUFFER
      else if (!own || length === BUFFER_SIZE) next = Buffer.allocUnsafeSlow(BUFFER_SIZE)
      return true
    }
    return connect({ ...at, onread: { buffer: () => next, callback } }, onOpen)
  }

  return {
    open(onOpen, take) {
      const socket = (secure ? openTls : openPlain)(onOpen, take)
      readPastBrokenWrites(socket)
      return socket.setNoDelay(true).setKeepAlive(true, PROBE_AFTER)
    },
  }
}

/**
 * A device may answer an upload before all of it has come, and close without reading on. The next write fails, and Node
 * would destroy the socket, with the answer that still waits in the kernel. So a write that fails, and each later one, counts
 * as done here, and the connection ends where reading ends.
 */
function readPastBrokenWrites(socket: Socket): void {
  const write = socket._write.bind(socket)
  const writev = socket._writev?.bind(socket)
  let broken = false
  /** The callback of the write under way: a stream has one at a time. */
  let done: (error?: Error | null) => void

  const onWritten = (error?: NodeJS.ErrnoException | null): void => {
    const reset = error?.code === 'ECONNRESET'
    broken = reset || error?.code === 'EPIPE'
    // The kernel reports a reset only once: here, so that reading then ends as after a FIN. (A write after a FIN gets EPIPE.)
    if (reset) socket.prependOnceListener('end', () => socket.destroy())
    done(broken ? undefined : error)
  }

  socket._write = (chunk, encoding, callback) => {
    done = callback
    if (broken) callback()
    else write(chunk, encoding, onWritten)
  }
  if (writev === undefined) return
  socket._writev = (chunks, callback) => {
    done = callback
    if (broken) callback()
    else writev(chunks, onWritten)
  }
}
