import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { UpstreamTarget } from './target.ts'

/** Takes what a connection reads; the bytes are the reader's only until it returns. */
export type TakeBytes = (bytes: Buffer, length: number) => void

export interface SocketOpener {
  /** Begins to open a connection; `onOpen` when it is open, and in TLS the device's certificate found good. */
  open(onOpen: () => void, take?: TakeBytes): Socket
}

/** Unused connections are tried after so long (ms), so that the kernel finds out when the device is gone. */
const PROBE_AFTER = 60_000

/** One for all connections, because whoever takes its bytes is done with them when the next are read. */
const BUFFER = Buffer.allocUnsafeSlow(64 * 1024)

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
    if (take !== undefined) socket.on('data', (bytes: Buffer) => take(bytes, bytes.length))
    return socket
  }

  function openPlain(onOpen: () => void, take: TakeBytes | undefined): Socket {
    if (take === undefined) return connect(at, onOpen)
    const callback = (length: number): boolean => {
      take(BUFFER, length)
      return true
    }
    return connect({ ...at, onread: { buffer: BUFFER, callback } }, onOpen)
  }

  return {
    open: (onOpen, take) =>
      (secure ? openTls : openPlain)(onOpen, take).setNoDelay(true).setKeepAlive(true, PROBE_AFTER),
  }
}
