import type { Socket } from 'node:net'

/** Bounds on a connection that lingers so that its client, which still sends, can read the answer. In ms and bytes. */
interface Bounds {
  readonly time: number
  readonly silence: number
  readonly bytes: number
}

export interface LingeringBounds {
  readonly usual: Bounds
  /** While the sidecar stops, and for connections beyond `mostAtOnce`. */
  readonly brief: Bounds
  readonly mostAtOnce: number
}

/** nginx's usual times (`lingering_time`, `lingering_timeout`). Discarding a GiB takes 0.7 s of a core, over TLS 1.2 s. */
const BOUNDS: LingeringBounds = {
  usual: { time: 30_000, silence: 5_000, bytes: 1024 ** 3 },
  brief: { time: 1_000, silence: 1_000, bytes: 256 * 1024 },
  mostAtOnce: 256,
}

/**
 * How many lingering connections are read in one turn of the event loop, each by 128 KiB at most. Without this bound, 64
 * clients that send as fast as they can delay all others by 160 ms.
 */
const READ_PER_TURN = 8

/** Closes connections whose client may still be sending, and bounds what that costs. */
export interface Lingering {
  /**
   * Sends the last bytes and closes a connection in two steps: our side ends, what the client is still sending is
   * discarded within bounds, then the connection closes. Closing at once would reset it while the answer is underway, and
   * the client would see an error instead (RFC 9112 §9.6). Nothing else reads the connection from here on, so that no
   * byte behind the answered request can be taken for another one.
   */
  end(socket: Socket, lastBytes?: string): void
  /** The sidecar stops: connections linger only briefly from now on. */
  drain(): void
}

export function createLingering({ usual, brief, mostAtOnce }: LingeringBounds = BOUNDS): Lingering {
  const lingering = new Set<LingeringSocket>()
  /** Connections that wait for their turn to be read. */
  const waiting: Socket[] = []
  let draining = false

  function readSome(): void {
    for (const socket of waiting.splice(0, READ_PER_TURN)) socket.resume()
    if (waiting.length > 0) setImmediate(readSome)
  }

  function waitForTurn(socket: Socket): void {
    socket.pause()
    if (waiting.push(socket) === 1) setImmediate(readSome)
  }

  return {
    end(socket, lastBytes = '') {
      if (socket.destroyed) return
      if (!socket.writableEnded) socket.end(lastBytes)
      const bounds = draining || lingering.size >= mostAtOnce ? brief : usual
      const one = new LingeringSocket(socket, bounds, waitForTurn)
      lingering.add(one)
      socket.once('close', () => {
        lingering.delete(one)
        one.stop()
      })
    },
    drain() {
      draining = true
      for (const one of lingering) one.tighten(brief)
    },
  }
}

/** A connection whose input is read only to be discarded. */
class LingeringSocket {
  readonly #socket: Socket
  #left: number
  #timer: NodeJS.Timeout

  constructor(socket: Socket, bounds: Bounds, waitForTurn: (socket: Socket) => void) {
    this.#socket = socket
    this.#left = bounds.bytes
    this.#timer = this.#limit(bounds)
    socket.removeAllListeners('data')
    socket.on('data', (chunk: Buffer) => {
      this.#left -= chunk.length
      if (this.#left < 0) this.#close()
      else waitForTurn(socket)
    })
    // The client has its answer, or has given up. What still waits to be written leaves before the connection closes.
    socket.once('end', () => socket.destroySoon())
    socket.on('timeout', this.#close)
    socket.resume()
  }

  tighten(bounds: Bounds): void {
    this.stop()
    this.#left = Math.min(this.#left, bounds.bytes)
    this.#timer = this.#limit(bounds)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #limit({ time, silence }: Bounds): NodeJS.Timeout {
    // Node restarts this timer at every byte that is read. A timeout of 0 stands for none.
    this.#socket.setTimeout(Math.min(this.#socket.timeout || silence, silence))
    return setTimeout(this.#close, time)
  }

  readonly #close = (): void => {
    this.#socket.destroy()
  }
}

/** Ends a connection in a way that nobody can take for its orderly end, as far as `wire`, which carries it, knows one. */
export function endBroken(socket: Socket, wire: Socket): void {
  // A Unix socket has no reset. A TLS socket is destroyed when its wire has closed; to destroy both at once, within a
  // callback of that TLS connection, ends the process (Node 26.10: SIGSEGV).
  if (wire.remoteAddress === undefined) socket.destroy()
  else wire.resetAndDestroy()
}
