import { AsyncLocalStorage } from 'node:async_hooks'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { Activity } from '../system/activity.ts'
import type { Clock } from '../system/clock.ts'
import { IdleList, type Idling } from '../system/idle-list.ts'
import { MovingDeadline } from '../system/moving-deadline.ts'
import { Sluice } from '../system/sluice.ts'
import type { TurnBudget } from '../system/turn-budget.ts'

/** How long (ms) a request may take to arrive, from the first byte of its connection or the response before it on. */
export const REQUEST_TIMEOUT = 10_000
/** The most bytes that are written at once. */
const PIECE = 16 * 1024

/** How long (ms) a client may neither read nor send anything, and at the end of its stream. */
const SILENCE = 10_000
const LAST_SILENCE = 2_000

/** Gives a connection to the server, which reads it by these turns. */
export type ReadByTurns = (wire: Socket, turns: TurnBudget) => void

/** The connections below the sockets of requests. */
const connections = new WeakMap<Socket, AdminWire>()

/** The TCP socket below the socket of a request, which alone knows the address of the peer. */
export function wireOf(socket: Socket): Socket {
  return connections.get(socket)?.wire ?? socket
}

/** A request has begun. `isWhole`: it has no body that has to arrive. */
export function requestBegan(socket: Socket, isWhole: boolean): void {
  connections.get(socket)?.requestBegan(isWhole)
}

/** The body of a request has arrived. */
export function bodyArrived(socket: Socket): void {
  connections.get(socket)?.bodyArrived()
}

/** The response is a stream: a client that reads all of it may be silent. */
export function streamBegan(socket: Socket): void {
  connections.get(socket)?.streamBegan()
}

/** The last bytes of a stream are written. They may wait for a client that does not read. */
export function streamEnds(socket: Socket): void {
  connections.get(socket)?.streamEnds()
}

/** A response has ended. */
export function requestEnded(socket: Socket): void {
  connections.get(socket)?.requestEnded()
}

type Done = (error?: Error | null) => void

/** The connections whose clients may fall silent, and those at the end of a stream. */
interface SilentWires {
  readonly usual: IdleList
  readonly last: IdleList
}

/** A TCP connection as `node:http` gets it in place of the socket, with what it uses of one. */
class AdminWire extends Sluice implements Idling {
  readonly wire: Socket
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>
  readonly #deadline: MovingDeadline
  readonly #silent: SilentWires
  readonly #activity: Activity
  /** The requests without a whole response, and those whose bodies have to arrive. */
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

  /** Piece by piece, because a socket does not say which part of a piece is taken. */
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

  /** If no request is left, the deadline for the next one goes on. */
  bodyArrived(): void {
    this.#arriving -= 1
    if (this.#arriving === 0 && this.#unanswered > 0) this.#deadline.cancel()
  }

  requestEnded(): void {
    this.#unanswered -= 1
    if (this.#unanswered === 0 && !this.destroyed) this.#deadline.move(REQUEST_TIMEOUT)
  }

  /** Destroys it when all that is written has been sent. */
  destroySoon(): void {
    this.end()
    if (this.writableFinished) this.destroy()
    else this.once('finish', () => this.destroy())
  }
}

/**
 * Hands each connection to a server of `node:http` or `node:https` as a `Sluice`: either takes any `Duplex` by its event `connection`. By itself it
 * parses all that one read of the socket brings, 1,500 requests in 64 KiB, before the first is answered. The server does not listen, so Node does not
 * look at the time that its requests take; the deadline of the connection does.
 */
export function readByTurns(server: Server, clock: Pick<Clock, 'monotonic' | 'after'>): ReadByTurns {
  /** Finds the connection below a `TLSSocket`. Node has no other public API for this. */
  const below = new AsyncLocalStorage<AdminWire>()
  server.on('secureConnection', (socket: Socket) => {
    const connection = below.getStore()
    if (connection !== undefined) connections.set(socket, connection)
  })
  const silent = { usual: new IdleList(clock, SILENCE), last: new IdleList(clock, LAST_SILENCE) }
  return (wire, turns) => {
    const connection = new AdminWire(wire, turns, clock, silent)
    // Proof of the cast: it is used as the socket of requests, and has what they use.
    const socket = connection as unknown as Socket
    connections.set(socket, connection)
    below.run(connection, () => void server.emit('connection', socket))
  }
}
