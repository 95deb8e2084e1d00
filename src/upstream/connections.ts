import type { Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher } from 'undici'
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
  borrow(): Connection
  close(): Promise<void>
}

/** Headers up to this size are taken from the device (bytes). */
const LARGEST_RESPONSE_HEADER = 64 * 1024

/**
 * Keep-alive connections to the device, the one used last first, so that after a burst the others go idle and close.
 * How many are lent at once is the in-flight guard's affair. An undici `Client` is one connection that opens again
 * by itself; owning them, instead of a `Pool`, is what tells a stale connection from a broken device.
 */
export function createConnections(target: UpstreamTarget, deadlines: UpstreamDeadlines): Connections {
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
    const slot = new Slot(client, idle)
    all.add(slot)
    return slot
  }

  return {
    borrow() {
      const slot = idle.pop() ?? open()
      slot.lend()
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
  #watch: AnswerWatch | undefined
  /** Whether the connection that is open now has carried a response, and whether it had when it was lent. */
  #answered = false
  #hadAnswered = false

  constructor(client: Client, idle: Slot[]) {
    this.dispatcher = client
    this.#idle = idle
  }

  opened(socket: Socket): void {
    keepResets(socket)
    this.#answered = false
    this.#watch = skipUnaskedContinue(socket)
    this.#watch.asked()
  }

  lend(): void {
    this.#hadAnswered = this.#answered
    this.#watch?.asked()
  }

  get reused(): boolean {
    return this.#hadAnswered && this.#answered && this.#watch?.heard !== true
  }

  release(answered: boolean): void {
    if (answered) this.#answered = true
    this.#idle.push(this)
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
