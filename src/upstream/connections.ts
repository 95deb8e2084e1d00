import { Client, type Dispatcher } from 'undici'
import type { UpstreamDeadlines, UpstreamTarget } from './target.ts'

export type { Dispatcher } from 'undici'

/** A connection to the device, lent to one request at a time. */
export interface Connection {
  readonly dispatcher: Dispatcher
  /** A response came back over it before: if it now breaks without a byte, the device had closed it meanwhile. */
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

  function open(): Slot {
    const client = new Client(target.origin, {
      pipelining: 1,
      allowH2: false,
      headersTimeout: deadlines.response,
      bodyTimeout: deadlines.idle,
      maxHeaderSize: LARGEST_RESPONSE_HEADER,
      connect: {
        timeout: deadlines.connect,
        ...(target.socketPath === undefined ? {} : { socketPath: target.socketPath }),
        ...(target.ca === undefined ? {} : { ca: target.ca }),
        rejectUnauthorized: !target.insecure,
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
  /** Whether the connection that is open now has carried a response, and whether it had when it was lent. */
  #answered = false
  #hadAnswered = false

  constructor(client: Client, idle: Slot[]) {
    this.dispatcher = client
    this.#idle = idle
    client.on('connect', () => {
      this.#answered = false
    })
  }

  lend(): void {
    this.#hadAnswered = this.#answered
  }

  get reused(): boolean {
    return this.#hadAnswered && this.#answered
  }

  release(answered: boolean): void {
    if (answered) this.#answered = true
    this.#idle.push(this)
  }
}
