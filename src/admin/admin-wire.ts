import { AsyncLocalStorage } from 'node:async_hooks'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { Sluice } from '../system/sluice.ts'
import type { TurnBudget } from '../system/turn-budget.ts'

/** Gives a connection to the server, which reads it by these turns. */
export type ReadByTurns = (wire: Socket, turns: TurnBudget) => void

/** The TCP sockets below the sockets of requests. */
const wires = new WeakMap<Socket, Socket>()

/** The TCP socket below the socket of a request, which alone knows the address of the peer. */
export function wireOf(socket: Socket): Socket {
  return wires.get(socket) ?? socket
}

/** A TCP connection as `node:http` gets it in place of the socket, with what it uses of one. */
class AdminWire extends Sluice {
  readonly #wire: Socket

  constructor(wire: Socket, turns: TurnBudget) {
    super(wire, turns, () => {})
    this.#wire = wire
    wire.on('timeout', () => this.emit('timeout'))
  }

  get timeout(): number | undefined {
    return this.#wire.timeout
  }

  setTimeout(time: number): this {
    this.#wire.setTimeout(time)
    return this
  }

  /** Destroys it when all that is written has been sent. */
  destroySoon(): void {
    this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }
}

/**
 * Has a server of `node:http` or `node:https` get each connection as a `Sluice`: either takes any `Duplex`. By itself it parses all that one read
 * of the socket brings, 1,500 requests in 64 KiB, before the first is answered. The listeners of the server are replaced by the result.
 */
export function readByTurns(server: Server): ReadByTurns {
  const readers = server.listeners('connection')
  server.removeAllListeners('connection')
  /** Finds the TCP socket below a `TLSSocket`. Node has no other public API for this. */
  const below = new AsyncLocalStorage<Socket>()
  server.on('secureConnection', (socket: Socket) => {
    const wire = below.getStore()
    if (wire !== undefined) wires.set(socket, wire)
  })
  return (wire, turns) => {
    // Proof of the cast: it is used as the socket of requests, and has what they use.
    const socket = new AdminWire(wire, turns) as unknown as Socket
    wires.set(socket, wire)
    below.run(wire, () => {
      for (const read of readers) Reflect.apply(read, server, [socket])
    })
  }
}
