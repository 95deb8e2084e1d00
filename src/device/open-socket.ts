import { connect, isIP, type LookupFunction, type Socket } from 'node:net'
import {
  checkServerIdentity,
  connect as connectTls,
  type PeerCertificate,
  type SecureContext,
} from 'node:tls'
import type { Taken } from '../http1/body.ts'
import { NAMES, type Names } from '../system/lookup.ts'
import { readPeersSafely } from '../system/peer-certificate.ts'
import { giveBack, LARGE_BUFFER, lendBuffer } from '../system/read-buffers.ts'
import { type DeviceTls, deviceTls, PIN_MISMATCH, pinOf, type UpstreamTarget } from './target.ts'

/** What reads the bytes of a connection. */
export interface Receiver {
  /**
   * Receives the first `length` bytes of a buffer, which are valid only during the call. `kept`: a piece of a body is the buffer itself,
   * which the receiver then owns. That needs a piece of at least `keepable` bytes at the beginning.
   */
  received(bytes: Buffer, length: number, keepable: number): Taken
  /** Whether the receiver takes pieces of `LARGE_BUFFER` bytes. */
  readonly takesLarge: boolean
  /** Whether the receiver waits for a response, or for more of one. */
  readonly midResponse: boolean
}

/**
 * Starts a connection. Calls `onOpen` when it is open; with TLS, after the certificate is verified. If the device reset the
 * connection, the socket is already destroyed when it emits `end`. If `receiver` is undefined, the caller itself reads from the
 * socket.
 */
export interface OpenSocket {
  (onOpen: () => void, receiver?: Receiver): Socket
  /** Whether a connection waits for the look-up of the device's name. */
  isResolving(): boolean
  /** Called when no connection was open in time. The next one waits for a new look-up. */
  forgetAddress(): void
}

/** The idle time (ms) before TCP keep-alive probes, by which the kernel detects a device that is gone. */
const PROBE_AFTER = 60_000

const BUFFER_SIZE = 64 * 1024

/** The read buffer that connections share. A large body is read into buffers of its own, which saves a copy. */
const BUFFER = Buffer.allocUnsafeSlow(BUFFER_SIZE)

type Open = (onOpen: () => void, receiver?: Receiver) => Socket

type DeviceAddress =
  | { readonly host: string; readonly port: number; readonly lookup: LookupFunction }
  | { readonly path: string }

/** Opens connections to the device. A TLS connection resumes the session of the previous one. */
export function createSocketOpener(
  { origin, socketPath, zone = '', tls }: UpstreamTarget,
  names: Names = NAMES,
): OpenSocket {
  const { protocol, hostname, port } = new URL(origin)
  const secure = protocol === 'https:'
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const at =
    socketPath === undefined
      ? { host: host + zone, port: Number(port) || (secure ? 443 : 80), lookup: names.lookup }
      : { path: socketPath }
  const open = secure ? tlsTo(at, host, tls ?? deviceTls({})) : plainTo(at)
  const forgetAddress = (): void => names.forget(host)
  const openSocket: Open = (onOpen, receiver) => {
    const socket = open(onOpen, receiver)
    readPastBrokenWrites(socket)
    // Not at `close`: a client that leaves may end a connection that is still opening, which says nothing about the address.
    socket.once('error', forgetAddress).once('connect', () => socket.off('error', forgetAddress))
    return socket.setNoDelay(true).setKeepAlive(true, PROBE_AFTER)
  }
  return Object.assign(openSocket, { isResolving: () => names.isResolving(host), forgetAddress })
}

/** A TLS session, and the pin of the certificate in its full handshake. The pin is set when that handshake has ended. */
interface TlsSession {
  readonly bytes: Buffer
  readonly context: SecureContext
  readonly shown: { readonly pin: string }
}

function tlsTo(at: DeviceAddress, host: string, tls: DeviceTls): Open {
  readPeersSafely()
  const { insecure = false, weak = false } = tls
  const options = {
    ...at,
    // The server name is also set for a Unix socket: the device selects its certificate by it. SNI takes no addresses (RFC 6066 §3).
    ...(isIP(host) === 0 ? { servername: host } : {}),
    checkServerIdentity: (_host: string, shown: PeerCertificate) => checkServerIdentity(host, shown),
    ALPNProtocols: ['http/1.1'],
    ...(weak ? { minDHSize: 1 } : {}),
  }
  let session: TlsSession | undefined
  /** Whether the device resumes sessions; undefined until it is known. If the first offer fails, no other is made. */
  let resumes: boolean | undefined

  return (onOpen, receiver) => {
    const { context, pin } = tls
    // A new client certificate or authority needs a new session.
    const offered = session?.context === context ? session : undefined
    const socket = connectTls({
      ...options,
      secureContext: context,
      rejectUnauthorized: !insecure && pin === undefined,
      ...(offered === undefined ? {} : { session: offered.bytes }),
    })
    const shown = { pin: '' }
    let handshake: 'not begun' | 'begun' | 'done' = 'not begun'
    socket.once('connect', () => {
      handshake = 'begun'
    })
    socket.once('secureConnect', () => {
      handshake = 'done'
      if (offered !== undefined) resumes = true
      if (pin !== undefined) {
        // A resumed session has no certificate in Node. It proves that the peer is the one of the full handshake.
        if (offered !== undefined && socket.isSessionReused()) shown.pin = offered.shown.pin
        else shown.pin = pinOf(socket.getPeerX509Certificate()?.raw)
        if (shown.pin !== pin) {
          const mismatch = new Error(`its certificate is not the pinned one: ${shown.pin} came`)
          socket.destroy(Object.assign(mismatch, { code: PIN_MISMATCH }))
          return
        }
      }
      onOpen()
    })
    socket.once('close', () => {
      if (handshake !== 'begun' || offered === undefined) return
      session = undefined
      resumes ??= false
    })
    socket.on('session', (bytes) => {
      if (resumes !== false) session = { bytes, context, shown }
    })
    if (receiver !== undefined)
      socket.on('data', (bytes: Buffer) => receiver.received(bytes, bytes.length, bytes.length))
    return socket
  }
}

function plainTo(at: DeviceAddress): Open {
  return (onOpen, receiver) => {
    if (receiver === undefined) return connect(at, onOpen)
    const reading = new ReadBuffer()
    const callback = (length: number): boolean => {
      const taken = receiver.received(reading.bytes, length, reading.keepable)
      if (taken !== 'small' || reading.bytes !== BUFFER) reading.follow(taken, length, receiver)
      return true
    }
    const socket = connect({ ...at, onread: { buffer: () => reading.bytes, callback } }, onOpen)
    return socket.once('close', () => reading.shrink())
  }
}

/**
 * The read buffer of a connection: the shared one, an own one during a large body, and a larger one once an own one was full. A piece that
 * fills an own buffer is sent on without a copy.
 */
class ReadBuffer {
  bytes: Buffer = BUFFER
  /** The least size (bytes) of a piece that may keep the buffer: a kept buffer is at least half used. */
  keepable = Number.POSITIVE_INFINITY

  /** Chooses the buffer for the next read. Not called after a small read into the shared buffer, which stays. */
  follow(taken: Taken, length: number, receiver: Receiver): void {
    this.#choose(taken, length, receiver)
    const { length: size } = this.bytes
    if (this.bytes === BUFFER) this.keepable = Number.POSITIVE_INFINITY
    else this.keepable = size === LARGE_BUFFER ? LARGE_BUFFER / 2 : size
  }

  #choose(taken: Taken, length: number, receiver: Receiver): void {
    // The receiver owns the buffer now.
    if (taken === 'kept') this.bytes = BUFFER
    // An idle connection waits for its next response without a buffer of its own.
    if (taken === 'small' || !receiver.midResponse) this.shrink()
    else if (taken === 'kept')
      this.bytes = (receiver.takesLarge ? lendBuffer() : undefined) ?? Buffer.allocUnsafeSlow(BUFFER_SIZE)
    else if (this.bytes === BUFFER) this.bytes = Buffer.allocUnsafeSlow(BUFFER_SIZE)
    else if (length < BUFFER_SIZE && this.bytes.length === LARGE_BUFFER) this.shrink()
  }

  shrink(): void {
    giveBack(this.bytes)
    this.bytes = BUFFER
  }
}

/**
 * Keeps a socket readable after a write fails. A device may respond to an upload early and close without reading the rest.
 * The next write then fails, and Node would destroy the socket together with the response that is still in the kernel. So a
 * write that fails with EPIPE or ECONNRESET, and each later one, counts as done. The connection ends when reading ends.
 */
function readPastBrokenWrites(socket: Socket): void {
  const write = socket._write.bind(socket)
  const writev = socket._writev?.bind(socket)
  let broken = false
  /** The callback of the write in progress. A stream has one at a time. */
  let done: (error?: Error | null) => void

  const onWritten = (error?: NodeJS.ErrnoException | null): void => {
    const reset = error?.code === 'ECONNRESET'
    broken = reset || error?.code === 'EPIPE'
    // The kernel reports a reset once. The failed write got that report, so reading ends as if by a FIN. The socket is destroyed before the
    // other `end` listeners run, so that they see a reset.
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
