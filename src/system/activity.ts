import type { Socket } from 'node:net'

/** When the peer of a socket was last active: when it sent something, or took queued bytes. Times in ms of one clock. */
export class Activity {
  /** When the owner of the socket has last seen the peer send or take something; 0: not since the last look. It writes here, which costs no call. */
  told = 0
  readonly #socket: Socket
  /** When the peer was last active, as of the last look. */
  #at: number
  #read: number
  #taken: number
  /** Bytes were queued at the last look. */
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
   * Returns when the peer was last active. A step that the owner did not tell counts as made now, and so does each one while bytes are queued: the
   * owner does not hear when they began to wait, or when a part of them is taken.
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

/** How many bytes have left the queue. `bytesWritten` counts queued ones, too. */
function takenOf({ bytesWritten, writableLength }: Socket): number {
  return bytesWritten - writableLength
}
