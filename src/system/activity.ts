import type { Socket } from 'node:net'

/** The time of the last activity of a socket's peer: it sent bytes, or took queued bytes. All times are in ms of one clock. */
export class Activity {
  /** When the owner of the socket last saw activity; 0: none since the last `look`. The owner writes it directly, to save a call. */
  told = 0
  readonly #socket: Socket
  /** The result of the last `look`. */
  #at: number
  #read: number
  #taken: number
  /** Bytes were queued at the last `look`. */
  #waited: boolean

  constructor(socket: Socket, now: number) {
    this.#socket = socket
    this.#at = now
    this.#read = socket.bytesRead
    this.#taken = takenOf(socket)
    this.#waited = socket.writableLength > 0
  }

  /** The peer is active now. */
  note(now: number): void {
    this.told = now
    this.look(now)
  }

  /**
   * Returns when the peer was last active. If the byte counts changed and `told` is 0, the activity counts as now. While bytes are queued,
   * every change counts as now, and so does the first `look` that finds them: the owner gets no event when bytes begin to queue, or when
   * the peer takes a part of them.
   */
  look(now: number): number {
    const { bytesRead: read, writableLength } = this.#socket
    const taken = takenOf(this.#socket)
    const waits = writableLength > 0
    const moved = read !== this.#read || taken !== this.#taken
    if (waits ? moved || !this.#waited : moved && this.told === 0) this.#at = now
    else if (this.told > 0) this.#at = this.told
    this.told = 0
    this.#read = read
    this.#taken = taken
    this.#waited = waits
    return this.#at
  }
}

/** The number of bytes that have left the queue. `bytesWritten` includes queued bytes. */
function takenOf({ bytesWritten, writableLength }: Socket): number {
  return bytesWritten - writableLength
}
