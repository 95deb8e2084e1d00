import { AsyncLocalStorage } from 'node:async_hooks'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { Activity } from '../system/activity.ts'
import type { Clock } from '../system/clock.ts'
import { IdleList, type Idling } from '../system/idle-list.ts'
import { MovingDeadline } from '../system/moving-deadline.ts'
import { Sluice } from '../system/sluice.ts'
import type { TurnBudget } from '../system/turn-budget.ts'

/** The longest time (ms) for the head of a request, from the start of its connection or the previous response on, and then for its body. */
export const REQUEST_TIMEOUT = 10_000
/** The most bytes of one write to the socket. */
const PIECE = 16 * 1024

/** The longest time (ms) for which a client may be idle; `LAST_SILENCE`: at the end of its stream. */
const SILENCE = 10_000
const LAST_SILENCE = 2_000

/** Passes a connection to the server, which reads it within the budget `turns`. */
export type ReadByTurns = (wire: Socket, turns: TurnBudget) => void

/** The connection below each socket of requests (`req.socket`). */
const connections = new WeakMap<Socket, AdminWire>()

/** The TCP socket below the socket of a request. Only the TCP socket knows the address of the peer. */
export function wireOf(socket: Socket): Socket {
  return connections.get(socket)?.wire ?? socket
}

/** A request has begun. `isWhole`: no body is awaited. */
export function requestBegan(socket: Socket, isWhole: boolean): void {
  connections.get(socket)?.requestBegan(isWhole)
}

/** The body of a request has arrived. */
export function bodyArrived(socket: Socket): void {
  connections.get(socket)?.bodyArrived()
}

/** The response is a stream: from now on the client may be idle. */
export function streamBegan(socket: Socket): void {
  connections.get(socket)?.streamBegan()
}

/** The last bytes of a stream are written: a client that does not read them within `LAST_SILENCE` is disconnected. */
export function streamEnds(socket: Socket): void {
  connections.get(socket)?.streamEnds()
}

/** A response has ended. */
export function requestEnded(socket: Socket): void {
  connections.get(socket)?.requestEnded()
}

type Done = (error?: Error | null) => void

/** The connections that are watched for idle clients: `usual` ones, and those at the end of a stream (`last`). */
interface SilentWires {
  readonly usual: IdleList
  readonly last: IdleList
}

/** A TCP connection that `node:http` gets in place of the socket. It has the members that `node:http` uses. */
class AdminWire extends Sluice implements Idling {
  readonly wire: Socket
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>
  readonly #deadline: MovingDeadline
  readonly #silent: SilentWires
  readonly #activity: Activity
  /** The number of requests without a whole response; `#arriving`: of those whose bodies are still awaited. */
  #unanswered = 0
  #arriving = 0

  constructor(
    wire: Socket,
    turns: TurnBudget,
    clock: Pick<Clock, 'monotonic' | 'after'>,
    silent: SilentWires,
  ) {
    super(wire, turns, { onHeld() {}, isKnown: () => false })
    this.wire = wire
    this.#clock = clock
    this.#silent = silent
    this.#activity = new Activity(wire, clock.monotonic())
    wire.on('data', this.#noteActivity)
    silent.usual.join(this)
    this.#deadline = new MovingDeadline(clock, () => this.destroy())
    this.#deadline.move(REQUEST_TIMEOUT)
    wire.once('close', () => {
      this.#deadline.cancel()
      this.#unwatch()
    })
  }

  readonly #noteActivity = (): void => this.#activity.note(this.#clock.monotonic())

  lastActive(now: number): number {
    return this.#activity.look(now)
  }

  onIdle(): void {
    this.destroy()
  }

  #unwatch(): void {
    this.#silent.usual.leave(this)
    this.#silent.last.leave(this)
  }

  streamBegan(): void {
    this.#unwatch()
  }

  streamEnds(): void {
    this.#unwatch()
    if (this.wire.destroyed) return
    this.#noteActivity()
    this.#silent.last.join(this)
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#send(bytes, done)
  }

  override _writev(pieces: readonly { readonly chunk: Buffer }[], done: Done): void {
    this.#send(Buffer.concat(pieces.map(({ chunk }) => chunk)), done)
  }

  /** Writes piece by piece: a socket reports a write only when all of it is taken, and each piece shows that the client still reads. */
  #send(bytes: Buffer, done: Done): void {
    this.wire.write(bytes.subarray(0, PIECE), (error) => {
      this.#noteActivity()
      if (error || bytes.length <= PIECE) done(error)
      else this.#send(bytes.subarray(PIECE), done)
    })
    this.lastActive(this.#clock.monotonic())
  }

  requestBegan(isWhole: boolean): void {
    this.#unanswered += 1
    if (!isWhole) {
      this.#arriving += 1
      this.#deadline.move(REQUEST_TIMEOUT)
    } else if (this.#arriving === 0) this.#deadline.cancel()
  }

  /** If no request is left unanswered, the deadline for the next one keeps running. */
  bodyArrived(): void {
    this.#arriving -= 1
    if (this.#arriving === 0 && this.#unanswered > 0) this.#deadline.cancel()
  }

  requestEnded(): void {
    this.#unanswered -= 1
    if (this.#unanswered === 0 && !this.destroyed) this.#deadline.move(REQUEST_TIMEOUT)
  }

  /** Ends the connection, and destroys it when all written bytes are sent. */
  destroySoon(): void {
    this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }
}

/**
 * Hands each connection to a server of `node:http` or `node:https` as a `Sluice`: both take any `Duplex` by their event `connection`. Given
 * the socket itself, the server would parse all bytes of one read, 1,500 requests in 64 KiB, before it answers the first. The server does
 * not listen, so Node's timeouts for requests do not run; the deadline of the connection replaces them.
 */
export function readByTurns(server: Server, clock: Pick<Clock, 'monotonic' | 'after'>): ReadByTurns {
  /** Finds the connection below a `TLSSocket`, for which Node has no other public API. */
  const below = new AsyncLocalStorage<AdminWire>()
  server.on('secureConnection', (socket: Socket) => {
    const connection = below.getStore()
    if (connection !== undefined) connections.set(socket, connection)
  })
  const silent = { usual: new IdleList(clock, SILENCE), last: new IdleList(clock, LAST_SILENCE) }
  return (wire, turns) => {
    const connection = new AdminWire(wire, turns, clock, silent)
    // Proof of the cast: the connection serves as the socket of requests, and has all members that requests use.
    const socket = connection as unknown as Socket
    connections.set(socket, connection)
    below.run(connection, () => void server.emit('connection', socket))
  }
}
