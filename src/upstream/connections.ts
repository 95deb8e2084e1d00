import type { Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher } from 'undici'
import type { Clock } from '../http/clock.ts'
import { createIdleMemory, type IdleMemory } from './idle-memory.ts'
import type { UpstreamDeadlines, UpstreamTarget } from './target.ts'
import { type AnswerWatch, skipUnaskedContinue } from './unasked-continue.ts'

export type { Dispatcher } from 'undici'

/** A connection to the device, lent to one request at a time. */
export interface Connection {
  readonly dispatcher: Dispatcher
  /** A response came back over it before, and nothing since: if it now breaks, the device had closed it meanwhile. */
  readonly reused: boolean
  /** Gives it back; `answered` when a response came over it, so that it is known to have been alive. */
  release(answered: boolean): void
}

export interface Connections {
  /** `repeatable`: for a request that is sent once more should the device have closed the connection meanwhile. */
  borrow(repeatable: boolean): Connection
  close(): Promise<void>
}

/** Headers up to this size are taken from the device (bytes). */
const LARGEST_RESPONSE_HEADER = 64 * 1024

/**
 * Keep-alive connections to the device, the one used last first, so that after a burst the others go idle and close.
 * How many are lent at once is the in-flight guard's affair. An undici `Client` is one connection that opens again
 * by itself; owning them, instead of a `Pool`, is what tells a stale connection from a broken device.
 */
export function createConnections(
  target: UpstreamTarget,
  deadlines: UpstreamDeadlines,
  clock: Clock,
): Connections {
  const memory = createIdleMemory(clock)
  const idle: Slot[] = []
  const all = new Set<Slot>()
  const connect = buildConnector({
    allowH2: false,
    timeout: deadlines.connect,
    ...(target.socketPath === undefined ? {} : { socketPath: target.socketPath }),
    ...(target.ca === undefined ? {} : { ca: target.ca }),
    rejectUnauthorized: !target.insecure,
  })

  function open(): Slot {
    const client = new Client(target.origin, {
      pipelining: 1,
      headersTimeout: deadlines.response,
      bodyTimeout: deadlines.idle,
      maxHeaderSize: LARGEST_RESPONSE_HEADER,
      connect(options, opened) {
        connect(options, (...result) => {
          const [error, socket] = result
          if (error === null) slot.opened(socket)
          opened(...result)
        })
      },
    })
    const slot = new Slot(client, idle, memory, clock)
    all.add(slot)
    return slot
  }

  return {
    borrow(repeatable) {
      const slot = idle.pop() ?? open()
      slot.lend(repeatable)
      return slot
    },
    async close() {
      await Promise.all([...all].map(({ dispatcher }) => dispatcher.destroy()))
    },
  }
}

/** One connection, and what is known of it while it is lent and after. */
class Slot implements Connection {
  readonly dispatcher: Client
  readonly #idle: Slot[]
  readonly #memory: IdleMemory
  readonly #clock: Clock
  #socket: Socket | undefined
  #lent = false
  /** When it was given back, and how long ago that was when it was lent again. */
  #since = 0
  #idleFor = 0
  #watch: AnswerWatch | undefined
  /** Whether the connection that is open now has carried a response, and whether it had when it was lent. */
  #answered = false
  #hadAnswered = false

  constructor(client: Client, idle: Slot[], memory: IdleMemory, clock: Clock) {
    this.dispatcher = client
    this.#idle = idle
    this.#memory = memory
    this.#clock = clock
  }

  opened(socket: Socket): void {
    keepResets(socket)
    socket.once('end', () => this.#closedByDevice())
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') this.#closedByDevice()
    })
    this.#socket = socket
    this.#answered = false
    this.#watch = skipUnaskedContinue(socket)
    this.#watch.asked()
  }

  lend(repeatable: boolean): void {
    this.#lent = true
    this.#idleFor = this.#clock.monotonic() - this.#since
    if (!this.#isTrusted(repeatable)) {
      // undici opens another in its place.
      this.#socket?.destroy()
      this.#answered = false
    }
    this.#hadAnswered = this.#answered
    this.#watch?.asked()
  }

  get reused(): boolean {
    return this.#hadAnswered && this.#answered && this.#watch?.heard !== true
  }

  release(answered: boolean): void {
    if (answered) {
      if (this.#hadAnswered && this.#answered) this.#memory.carried(this.#idleFor)
      this.#answered = true
    }
    this.#lent = false
    this.#since = this.#clock.monotonic()
    this.#idle.push(this)
  }

  #isTrusted(repeatable: boolean): boolean {
    return this.#socket?.destroyed === false && this.#memory.trusts(this.#idleFor, repeatable)
  }

  /** Between two requests, or when the second came: what the first was answered with has nothing to do with it. */
  #closedByDevice(): void {
    if (!this.#lent) this.#memory.closed(this.#clock.monotonic() - this.#since)
    else if (this.reused) this.#memory.closed(this.#idleFor)
  }
}

/**
 * Where only the end of the connection ends a body, undici takes a reset for that end. A body that was cut must not look
 * whole (C24), so undici hears of another error.
 */
function keepResets(socket: Socket): void {
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') error.code = 'EPIPE'
  })
}
