import type { Socket } from 'node:net'
import type { Taken } from '../http1/body.ts'
import type { Deviation } from '../http1/deviation.ts'
import type { HttpVersion } from '../http1/request-writer.ts'
import type { KnownHeads, ResponseRules } from '../http1/response-reader.ts'
import type { Clock } from '../system/clock.ts'
import { DeviceFault, failureOf } from './failure.ts'
import type { DelayedAcks } from './kept-connections.ts'
import type { OpenSocket, Receiver } from './open-socket.ts'
import type { Reuse, UpstreamDeadlines } from './target.ts'
import type { Room, Turns } from './turns.ts'

/** What all connections to one device share. */
export interface ConnectionSettings {
  readonly openSocket: OpenSocket
  readonly deadlines: UpstreamDeadlines
  readonly turns: Turns
  readonly room: Room
  readonly clock: Clock
  /** For requests that name no host. */
  readonly host: string
  readonly reuse: Reuse
  readonly version: HttpVersion
  /** For the next response. With `tolerant` a connection carries one request: stray bytes cannot become a response. */
  readonly rules: ResponseRules
  readonly acks: DelayedAcks
  readonly known: KnownHeads
  /** Called when the device sends bytes that belong to no request, on a connection that could have carried another one. */
  readonly onStray: () => void
  /** The device sent a response that the strict rules refuse: `auto` becomes `tolerant`, and stays so. */
  readonly onSloppy: (deviation: Deviation, line: RequestLine) => void
}

/** What a request asks for. */
export interface RequestLine {
  readonly method: string
  readonly target: string
}

/** Made once: an error that a connection makes for itself would hold the request that opened it, by the frames of its stack. */
const TERMINATED = new DeviceFault('connection_terminated')

/**
 * The socket of a connection to the device. It is opened when its turn comes. If the device refuses it, or drops it before a byte of a
 * response, it is opened again with growing pauses, within the connect deadline, for a request that may be sent again. A request that
 * was sent and dropped is sent only once more, on a connection that the device keeps for a moment: the request may be what crashes it.
 */
export abstract class DeviceSocket<S extends ConnectionSettings = ConnectionSettings> implements Receiver {
  protected readonly settings: S
  readonly #upgrade: boolean
  /** `switched`: a handler has the socket, as a tunnel. */
  protected state: 'connecting' | 'open' | 'switched' | 'closed' = 'connecting'
  /** Undefined before it is opened, and between two attempts. */
  protected socket: Socket | undefined
  /** Why the connection fails when its socket has closed. */
  protected fault = TERMINATED
  /** The pauses (ms) before the first attempt, and after the refusals. */
  readonly #pause: number
  #refused = 0
  #opening = 0
  /** How long (ms) the connection has to stay open before a dropped request is sent again; 0: none was dropped. See `Turns.trial`. */
  #trial = 0
  #connectLimit: NodeJS.Timeout
  #endLimit: NodeJS.Timeout | undefined
  /** Why the device did not take the last attempt. */
  #refusal: unknown
  onEnded: (() => void) | undefined = undefined

  /** @param upgrade the connection may become a tunnel */
  constructor(settings: S, repeatable: boolean, upgrade: boolean) {
    const { turns } = settings
    this.settings = settings
    this.#upgrade = upgrade
    this.#connectLimit = this.#limitConnect()
    this.#pause = turns.pause(repeatable)
    turns.take(this.#pause, () => this.#open())
  }

  protected abstract opened(): void
  abstract received(bytes: Buffer, length: number, keepable: number): Taken
  abstract readonly takesLarge: boolean
  abstract readonly midResponse: boolean
  /** The device ended the connection, with FIN if `inOrder`. */
  protected abstract finished(inOrder: boolean): void
  /** Whether the connection was opened for a request that may be sent now, or once more. */
  protected abstract mayOpenAgain(sent: boolean): boolean
  /** Closes the connection and fails its request. */
  abstract destroy(error: unknown): void

  /** Called when the device sent FIN or reset the connection. */
  protected closedByDevice(): void {}

  /** Called once, when the connection has closed, by either side. */
  protected closed(responded = false): void {
    clearTimeout(this.#endLimit)
    this.settings.turns.ended(this, responded)
  }

  /** The device responded on this connection for the first time. `alone`: it has no other, so a refusal was about the pause. */
  protected accepted(alone: boolean): void {
    if (this.#refused === 0 || alone) this.settings.turns.accepted(this.#pause, this.#refused)
  }

  readonly onData = (bytes: Buffer): void => void this.received(bytes, bytes.length, bytes.length)

  #limitConnect(): NodeJS.Timeout {
    const { connect } = this.settings.deadlines
    // Between two attempts the device has not been silent: it refused.
    const giveUp = (): void => this.destroy(this.#refusal ?? new DeviceFault('connection_timeout'))
    return setTimeout(giveUp, connect).unref()
  }

  #open(): void {
    if (this.state !== 'connecting') return
    const { openSocket, turns, room } = this.settings
    this.#opening = turns.now()
    if (!this.#upgrade) {
      turns.came()
      room.opens(turns.present)
    }
    const socket = openSocket(
      () => {
        if (this.#trial === 0) this.#start(socket)
        // After a stall of this process the timer fires before what has arrived meanwhile is read: a drop must be seen first.
        else setTimeout(() => setImmediate(() => this.#start(socket)), this.#trial).unref()
      },
      // A tunnel is read as a stream.
      this.#upgrade ? undefined : this,
    )
    this.socket = socket
    if (this.#upgrade) socket.on('data', this.onData)
    socket.on('end', () => {
      if (this.state === 'switched') return
      if (this.state === 'closed') this.settings.turns.endedInTime()
      else this.closedByDevice()
      this.finished(!socket.destroyed)
      socket.destroy()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') this.closedByDevice()
      this.#lost(socket, error)
    })
    socket.on('close', () => {
      if (!this.#upgrade) turns.gone()
      this.#lost(socket, this.fault)
      if (this.socket === socket) this.closed()
    })
  }

  #start(socket: Socket): void {
    if (this.state !== 'connecting' || this.socket !== socket) return
    this.state = 'open'
    this.settings.turns.opened()
    clearTimeout(this.#connectLimit)
    this.opened()
  }

  #lost(socket: Socket, error: unknown): void {
    if (this.socket !== socket) return
    const sent = this.state === 'open'
    const pause = sent || this.state === 'connecting' ? this.#nextPause(sent, error) : undefined
    if (pause === undefined) {
      this.destroy(error)
      return
    }
    this.#refused += pause
    this.#refusal = error
    this.socket = undefined
    socket.destroy()
    if (sent) {
      this.#trial = this.settings.turns.trial(this.#opening)
      this.#connectLimit = this.#limitConnect()
    }
    this.state = 'connecting'
    setTimeout(() => this.#openAgain(), pause).unref()
  }

  /**
   * Opens the connection when the present bound has room for it. The bound may have fallen since the first attempt: a device that comes back
   * would otherwise get all connections at once that wait for it. A tunnel holds no place.
   */
  #openAgain(): void {
    const { turns, room } = this.settings
    if (this.state !== 'connecting') return
    if (this.#upgrade || turns.present < room.places()) this.#open()
    else turns.awaitRoom(() => this.#openAgain())
  }

  #nextPause(sent: boolean, error: unknown): number | undefined {
    const { turns, deadlines, room } = this.settings
    const failure = failureOf(error)
    const turnedAway = failure === 'connection_refused' || failure === 'connection_terminated'
    if (failure === 'connection_refused') {
      turns.refused()
      room.refused()
    }
    const again = this.mayOpenAgain(sent) && !(sent && this.#trial > 0)
    return turnedAway && again ? turns.again(sent, this.#refused, deadlines.connect) : undefined
  }

  /** Closes the socket. `idle`: no request is in flight. Otherwise the connection is cut, to end the request at the device. */
  protected closeSocket(idle: boolean): void {
    const { socket } = this
    const { turns } = this.settings
    this.state = 'closed'
    clearTimeout(this.#connectLimit)
    if (socket === undefined) this.closed()
    else if (!turns.inOrder() || !idle || socket.destroyed) socket.destroy()
    else {
      socket.resume().end()
      this.#endLimit = turns.close(this, () => socket.destroy())
    }
  }
}
