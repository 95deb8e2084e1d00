import type { Socket } from 'node:net'
import type { Clock, Timer } from '../system/clock.ts'
import { DeviceFault, failureOf } from './failure.ts'
import type { OpenSocket, Receiver } from './open-socket.ts'
import type { UpstreamDeadlines } from './target.ts'
import type { Capacity, Ending, Turns } from './turns.ts'

/** What the openers of one device share. */
export interface OpenerSettings {
  readonly clock: Clock
  readonly openSocket: OpenSocket
  readonly deadlines: UpstreamDeadlines
  readonly turns: Turns
  readonly capacity: Capacity
}

/** What an opener asks and tells its connection, which also receives the bytes of the socket. */
export interface OpenerEvents extends Receiver {
  /** Whether to open another socket: a request waits that was not sent yet or, if `sent`, that may be sent again. */
  mayOpenAgain(sent: boolean): boolean
  /** The device has refused or dropped the socket. Another one is opened. */
  onOpenAgain(): void
  onOpen(socket: Socket): void
  /** The device sent FIN or reset the connection. */
  onClosedByDevice(): void
  /** No further byte comes. `inOrder`: the device ended its side with FIN. */
  onEnd(inOrder: boolean): void
  /** The connection could not be opened, or it broke. It is not opened again. */
  onLost(error: unknown): void
  /** Called once, when the connection has closed, by either side. */
  onClosed(): void
}

/**
 * - `waiting`: for its turn, for the end of a pause, or until the device can take it
 * - `opening`: also while an open socket is on trial (`Turns.trial`)
 * - `tunnel`: a handler has the socket
 * - `closed`: the socket, if there was one, may still await the FIN of the device
 */
type OpenerState =
  | { readonly kind: 'waiting'; readonly socket: undefined }
  | { readonly kind: 'opening' | 'open' | 'tunnel'; readonly socket: Socket }
  | { readonly kind: 'closed'; readonly socket: Socket | undefined }

const WAITING: OpenerState = { kind: 'waiting', socket: undefined }

/** One shared error. An error for each connection would hold, in the frames of its stack, the request that opened it. */
export const TERMINATED: DeviceFault = new DeviceFault('connection_terminated')

/**
 * Opens the socket of one connection to the device when its turn comes, and ends the turn when the socket has closed.
 *
 * If the device refuses the socket, or drops it before a byte of a response, a request that may be sent again gets another socket after a
 * growing pause, within the connect deadline. A request that was sent and dropped is sent only once more, on a connection that the device
 * keeps open for a moment: the request may be what crashes the device.
 */
export class Opener implements Ending {
  readonly #settings: OpenerSettings
  readonly #events: OpenerEvents
  readonly #mayTunnel: boolean
  #state: OpenerState = WAITING
  /** The pause (ms) before the first attempt, and the sum of the pauses after refusals. */
  readonly #pause: number
  #refused = 0
  /** Why the device did not take the last attempt. */
  #refusal: unknown
  /** When the last attempt began. */
  #startedAt = 0
  /** How long (ms) the new connection has to stay open before the dropped request is sent again; 0: none was dropped. See `Turns.trial`. */
  #trial = 0
  /** The device has responded on this connection. */
  #accepted = false
  /** The error with which the connection is lost when its socket closes. */
  #fault = TERMINATED
  #connectLimit: Timer
  #endLimit: Timer | undefined
  onEnded: (() => void) | undefined = undefined

  /**
   * @param repeatable the request that opens it may be sent again if the device refuses or drops it
   * @param mayTunnel the socket is read as a stream, and holds no place at the device
   */
  constructor(settings: OpenerSettings, events: OpenerEvents, repeatable: boolean, mayTunnel: boolean) {
    const { turns } = settings
    this.#settings = settings
    this.#events = events
    this.#mayTunnel = mayTunnel
    this.#connectLimit = this.#limitConnect()
    this.#pause = turns.pause(repeatable)
    turns.take(this.#pause, () => this.#open())
  }

  /**
   * The device responded on this connection for the first time. `alone`: the device has no other connection, so it refused only because the
   * pause was too short.
   */
  accepted(alone: boolean): void {
    this.#accepted = true
    if (this.#refused === 0 || alone) this.#settings.turns.accepted(this.#pause, this.#refused)
  }

  /** Hands over the open socket as a tunnel, paused. Its errors and its end still close the connection. */
  handOver(): Socket | undefined {
    if (this.#state.kind !== 'open') return undefined
    const { socket } = this.#state
    this.#state = { kind: 'tunnel', socket }
    return socket.off('data', this.#read).pause()
  }

  /** Destroys the socket. When it has closed, the connection is lost with this error. */
  fail(fault: DeviceFault): void {
    this.#fault = fault
    this.#state.socket?.destroy()
  }

  /** Closes the socket. `idle`: no request is in flight. Otherwise the connection is cut, to end the request at the device. */
  close(idle: boolean): void {
    const { socket } = this.#state
    const { turns } = this.#settings
    this.#state = { kind: 'closed', socket }
    this.#connectLimit.cancel()
    if (socket === undefined) this.#closed()
    else if (!turns.inOrder() || !idle || socket.destroyed) socket.destroy()
    else {
      socket.resume().end()
      this.#endLimit = turns.close(this, () => socket.destroy())
    }
  }

  /** Destroys the socket, also one that awaits the FIN of the device. */
  destroy(): void {
    this.#state.socket?.destroy()
  }

  readonly #read = (bytes: Buffer): void => void this.#events.received(bytes, bytes.length, bytes.length)

  #limitConnect(): Timer {
    const { clock, deadlines } = this.#settings
    const giveUp = (): void => {
      const { openSocket } = this.#settings
      const isResolving = this.#state.kind === 'opening' && openSocket.isResolving()
      const late = isResolving ? 'dns_timeout' : 'connection_timeout'
      if (this.#state.socket?.connecting === true) openSocket.forgetAddress()
      // Between two attempts the device is not silent: it refused the last one.
      this.#events.onLost(this.#refusal ?? new DeviceFault(late))
    }
    return clock.after(deadlines.connect, giveUp)
  }

  #open(): void {
    if (this.#state.kind !== 'waiting') return
    const { clock, openSocket, turns, capacity } = this.#settings
    this.#startedAt = turns.now()
    if (!this.#mayTunnel) {
      turns.came()
      capacity.opens(turns.present)
    }
    const socket = openSocket(
      () => {
        if (this.#trial === 0) this.#start(socket)
        // On trial: the device may still drop the connection.
        else clock.after(this.#trial, () => this.#start(socket))
      },
      // A tunnel is read as a stream.
      this.#mayTunnel ? undefined : this.#events,
    )
    this.#state = { kind: 'opening', socket }
    if (this.#mayTunnel) socket.on('data', this.#read)
    socket.on('end', () => {
      if (this.#state.kind === 'tunnel') return
      if (this.#state.kind === 'closed') turns.endedInTime()
      else this.#events.onClosedByDevice()
      this.#events.onEnd(!socket.destroyed)
      socket.destroy()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') this.#events.onClosedByDevice()
      this.#lost(socket, error)
    })
    socket.on('close', () => {
      if (!this.#mayTunnel) turns.gone()
      this.#lost(socket, this.#fault)
      if (this.#state.socket === socket) this.#closed()
    })
  }

  #start(socket: Socket): void {
    if (this.#state.kind !== 'opening' || this.#state.socket !== socket) return
    this.#state = { kind: 'open', socket }
    this.#settings.turns.opened()
    this.#connectLimit.cancel()
    this.#events.onOpen(socket)
  }

  #lost(socket: Socket, error: unknown): void {
    const { kind } = this.#state
    if (this.#state.socket !== socket) return
    const sent = kind === 'open'
    const pause = sent || kind === 'opening' ? this.#nextPause(sent, error) : undefined
    if (pause === undefined) {
      this.#events.onLost(error)
      return
    }
    this.#state = WAITING
    this.#refused += pause
    this.#refusal = error
    socket.destroy()
    if (sent) {
      this.#trial = this.#settings.turns.trial(this.#startedAt)
      this.#connectLimit = this.#limitConnect()
    }
    this.#events.onOpenAgain()
    this.#settings.clock.after(pause, () => this.#openAgain())
  }

  /**
   * Opens another socket when the present bound allows it. The bound may have fallen since the first attempt. Without this check, a device
   * that comes back would get all waiting connections at once. A tunnel holds no place.
   */
  #openAgain(): void {
    const { turns, capacity } = this.#settings
    if (this.#state.kind !== 'waiting') return
    if (this.#mayTunnel || turns.present < capacity.load.places) this.#open()
    else turns.awaitCapacity(() => this.#openAgain())
  }

  #nextPause(sent: boolean, error: unknown): number | undefined {
    const { turns, deadlines, capacity } = this.#settings
    const failure = failureOf(error)
    const turnedAway = failure === 'connection_refused' || failure === 'connection_terminated'
    if (failure === 'connection_refused') {
      turns.refused()
      capacity.refused()
    }
    const again = this.#events.mayOpenAgain(sent) && !(sent && this.#trial > 0)
    return turnedAway && again
      ? turns.again(sent, this.#startedAt, this.#refused, deadlines.connect)
      : undefined
  }

  #closed(): void {
    this.#endLimit?.cancel()
    this.#events.onClosed()
    this.#settings.turns.ended(this, this.#accepted)
  }
}
