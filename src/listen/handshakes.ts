import { AsyncLocalStorage } from 'node:async_hooks'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { createServer, type SecureContextOptions, type TLSSocket } from 'node:tls'
import type { Clock, Timer } from '../system/clock.ts'
import { HANDSHAKE_WORK, type TurnBudget } from '../system/turn-budget.ts'
import type { FailedHandshake, ListenLimits } from './connection-caps.ts'
import { LAST_REQUEST } from './http1/http1-connection.ts'
import type { Lingering } from './linger.ts'
import type { TlsMaterial } from './tls-pair.ts'

/** How long a TLS handshake may continue after the sidecar begins to stop (ms). */
const LAST_HANDSHAKE = 2_000

interface HandshakeDependencies {
  readonly clock: Pick<Clock, 'after'>
  readonly limits: Pick<ListenLimits, 'tlsTimeout'>
  readonly material: TlsMaterial
  /** Closes the connections of clients that speak plain HTTP. */
  readonly lingering: Pick<Lingering, 'end'>
  /** The turn budget of a connection. */
  readonly turnsOf: (wire: Socket) => TurnBudget
  /** The stream from which TLS reads the connection: the socket itself, or a `Sluice`. */
  readonly readable: (wire: Socket) => Duplex
  /** Called after a handshake. `wire`: the TCP socket below `socket`. */
  readonly accept: (socket: TLSSocket, wire: Socket) => void
  readonly onFailed: (reason: FailedHandshake) => void
  /** The complete HTTP/1 response for a client that speaks HTTP without TLS. It contains nothing of the request. */
  readonly plainHttpMessage: () => string
}

/** A TLS handshake. `wire`: the TCP socket; undefined after the handshake. */
interface Handshake {
  wire: Socket | undefined
  readonly deadline: Timer
}

/** The TLS side of the public listener, from the first byte of a connection to the end of its handshake. */
export function createHandshakes(deps: HandshakeDependencies) {
  const { clock, limits, accept, onFailed } = deps
  const running = new Set<Handshake>()
  let stopping = false
  /** The ends of the handshakes in progress at a stop. */
  const last: Timer[] = []
  /** Finds the handshake, and with it the `Socket` below a `TLSSocket`. Node has no other public API for this. */
  const handshakeOf = new AsyncLocalStorage<Handshake>()

  const server = createServer(
    {
      ...contextOf(deps.material),
      ALPNProtocols: ['h2', 'http/1.1', 'http/1.0'],
      // It never fires: the deadline in `begin` is earlier.
      handshakeTimeout: 2 * limits.tlsTimeout,
      noDelay: true,
    },
    (socket) => {
      const handshake = handshakeOf.getStore()
      const wire = handshake?.wire ?? socket
      if (handshake !== undefined) settle(handshake)
      accept(socket, wire)
    },
  )
  server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
    socket.destroy()
    const handshake = handshakeOf.getStore()
    // Any other error means that TLS could not be negotiated, or that the client does not speak TLS.
    if (handshake !== undefined) settle(handshake, error.code === 'ECONNRESET' ? 'client_left' : 'tls_error')
  })

  /** Ends a handshake, once. Clears `wire`, because the asynchronous context of the connection keeps the `Handshake` object alive. */
  function settle(handshake: Handshake, failure?: FailedHandshake): void {
    if (!running.delete(handshake)) return
    handshake.deadline.cancel()
    handshake.wire = undefined
    if (failure !== undefined) onFailed(failure)
  }

  function expire(handshake: Handshake): void {
    const { wire } = handshake
    settle(handshake, 'handshake_timeout')
    wire?.destroy()
  }

  return {
    /** Starts the handshake on a new connection. A client that speaks plain HTTP gets a response. Any other failure only closes it. */
    begin(socket: Socket): void {
      const handshake: Handshake = {
        wire: socket,
        deadline: clock.after(limits.tlsTimeout, () => expire(handshake)),
      }
      running.add(handshake)
      // Without a listener, a reset before the first byte would be an uncaught error. After that the `TLSSocket` handles errors.
      socket.on('error', () => {})
      socket.once('close', () => settle(handshake, stopping ? undefined : 'client_left'))
      onFirstByte(socket, (byte) => {
        // HTTP methods and the HTTP/2 preface (`PRI * HTTP/2.0`) begin with a capital letter, TLS with 0x16 (RFC 8446 §5.1).
        if (byte >= 0x41 && byte <= 0x5a) {
          settle(handshake, 'plain_http')
          deps.lingering.end(socket, deps.plainHttpMessage())
          return
        }
        const shake = (): void =>
          void handshakeOf.run(handshake, () => server.emit('connection', deps.readable(socket)))
        deps.turnsOf(socket).run(HANDSHAKE_WORK, shake, () => socket.destroyed)
      })
    },
    /** New handshakes use this certificate. */
    applyTls: (material: TlsMaterial): void => server.setSecureContext(contextOf(material)),
    /** Call this when the sidecar begins to stop: handshakes in progress end soon. */
    drain(): void {
      stopping = true
      const silent = clock.after(LAST_REQUEST, () => {
        for (const { wire } of running) if (wire?.bytesRead === 0) wire.destroy()
      })
      const slow = clock.after(LAST_HANDSHAKE, () => {
        for (const { wire } of running) wire?.destroy()
      })
      last.push(silent, slow)
    },
    /** Call this when all connections are closed. */
    close(): void {
      for (const timer of last) timer.cancel()
    },
  }
}

/** TLS 1.3, then the suites of TLS 1.2 with forward secrecy and AEAD: HTTP/2 prohibits all others (RFC 9113 §9.2.2, appendix A). */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':')

/** The TLS context. Its groups are OpenSSL's defaults, with X25519MLKEM768 first: a later quantum computer cannot decrypt recordings. */
export function contextOf({ cert, key }: TlsMaterial): SecureContextOptions {
  return { cert, key, minVersion: 'TLSv1.2', ciphers: CIPHERS }
}

/**
 * Calls `then` once, with the first byte of a new connection; never if the connection ends before. The bytes stay in the buffer of the
 * socket, from which a `TLSSocket` reads them without leaving its native path (`receive` of its handle). Costs at most 2 % of a handshake
 * (12 pairs of 1,200). It also costs about 0.1 s of processor time for each GiB of an upload: Node makes the first of its two read buffers as
 * large as these bytes, about 1.5 KiB instead of 64 KiB. OpenSSL's error for plain HTTP is no substitute: Node closes the socket with it, so
 * no response could be sent.
 */
function onFirstByte(socket: Socket, then: (byte: number) => void): void {
  function inspect(): void {
    const chunk: Buffer | null = socket.read()
    if (chunk === null) return
    socket.removeListener('readable', inspect)
    socket.unshift(chunk)
    then(chunk[0] ?? 0)
  }
  socket.on('readable', inspect)
}
