import { BrokenBodyError, StalledBodyError } from '../http/refusal.ts'
import { afterTurn, type Clock } from '../system/clock.ts'
import { MovingDeadline } from '../system/moving-deadline.ts'

type Read = IteratorResult<Buffer, undefined>

const END: Read = { done: true, value: undefined }
const NOTHING = Buffer.alloc(0)

/** The clock of an empty body, which waits for nothing. */
const NO_CLOCK = { monotonic: () => 0, after: () => ({ cancel() {} }) }

/** The memory overhead of one received piece (bytes). It is charged because a client may send pieces of one byte. */
export const PIECE = 128

/** A piece below this size (bytes) is joined with all pieces behind it: a copy of a few bytes costs less than another read of the body. */
const SMALL = 4 * 1024

/** The body of one request: the connection or stream pushes bytes in, the exchange reads them. */
export class RequestBody implements AsyncIterable<Buffer, undefined> {
  bytes = 0
  readonly #onRoom: () => void
  readonly #most: number
  readonly #isDeferred: () => boolean
  #onHeld: ((change: number) => void) | undefined
  #pieces: Buffer[] = []
  #held = 0
  #state: 'receiving' | 'whole' | 'broken' = 'receiving'
  #unread = true
  #readBegun = false
  #waiting: PromiseWithResolvers<Read> | undefined
  #stallTimeout = 0
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>
  /** The deadline for more data. */
  #deadline: MovingDeadline | undefined
  #onBroken: (() => void) | undefined

  /**
   * @param onRoom called when bytes may be pushed again: the body was read, a read waits, or all bytes are dropped from now on
   * @param most the body is full at this many unread bytes, including `PIECE` for each piece; 0: it takes bytes only while a read waits
   * @param isDeferred whether received bytes wait for a later turn of the event loop to be pushed
   */
  constructor(
    clock: Pick<Clock, 'monotonic' | 'after'>,
    onRoom: () => void,
    most: number,
    isDeferred: () => boolean = () => false,
  ) {
    this.#clock = clock
    this.#onRoom = onRoom
    this.#most = most
    this.#isDeferred = isDeferred
  }

  /** Calls `onHeld` at once with the bytes that the body holds, then with each change; a negative change means fewer bytes. */
  charge(onHeld: (change: number) => void): void {
    this.#onHeld = onHeld
    onHeld(this.#cost)
  }

  /** The body of a request without one: it is empty and complete. */
  static empty(): RequestBody {
    const body = new RequestBody(NO_CLOCK, () => {}, 0)
    body.finish()
    return body
  }

  /** More bytes of the body may come. */
  get unread(): boolean {
    return this.#unread
  }

  /** More bytes of the body may come, and it was partly read or broke off. The connection then closes, instead of draining the rest. */
  get begun(): boolean {
    return this.#unread && (this.#readBegun || this.#state === 'broken')
  }

  /** The rest of the body can never come, or was dropped. */
  get broken(): boolean {
    return this.#state === 'broken'
  }

  /** The number of bytes that have arrived, read or not; `Infinity` when all have. */
  get arrived(): number {
    return this.#state === 'whole' ? Number.POSITIVE_INFINITY : this.bytes + this.#held
  }

  /** The buffer is full: the client has to wait. */
  get full(): boolean {
    return this.#state === 'receiving' && this.#waiting === undefined && this.#cost >= this.#most
  }

  get #cost(): number {
    return this.#held + PIECE * this.#pieces.length
  }

  push(data: Buffer): void {
    if (this.#state !== 'receiving') return
    const waiting = this.#waiting
    if (waiting === undefined) {
      this.#pieces.push(data)
      this.#held += data.length
      this.#onHeld?.(data.length + PIECE)
    } else {
      this.#waiting = undefined
      this.bytes += data.length
      waiting.resolve({ done: false, value: data })
    }
  }

  finish(): void {
    this.#unread = false
    if (this.#state === 'receiving') this.#end('whole')
  }

  /** Call this when the rest will never arrive, or the end of the body is uncertain. Drops the buffered bytes; reads fail from now on. */
  break(): void {
    if (this.#state === 'broken') return
    this.discard()
    this.#onBroken?.()
  }

  /** A later listener replaces the earlier one. If the body is already broken, the listener is called at once. */
  onBroken(listener: () => void): void {
    this.#onBroken = listener
    if (this.broken) listener()
  }

  /** Discards the buffered bytes and all later ones. */
  discard(): void {
    if (this.#state === 'whole' && this.#pieces.length === 0) return
    this.#onHeld?.(-this.#cost)
    this.#pieces = []
    this.#held = 0
    this.#end('broken')
    this.#onRoom()
  }

  /** The body, read on demand. `stallTimeout` (ms) bounds a pause in the data; chunk framing alone does not end a pause. */
  within(stallTimeout: number): AsyncIterable<Buffer, undefined> {
    this.#stallTimeout = stallTimeout
    this.#readBegun = true
    return this
  }

  /** Waits for the first bytes or the end. Has the timeout of `within` and the errors of a read. The bytes stay unread. */
  async arrival(): Promise<void> {
    const { value } = await this.#next()
    this.#readBegun = false
    if (value === undefined) return
    this.bytes -= value.length
    this.#held += value.length
    this.#pieces.unshift(value)
    this.#onHeld?.(value.length + PIECE)
  }

  [Symbol.asyncIterator](): AsyncIterator<Buffer, undefined> {
    return { next: () => this.#next(), return: () => Promise.resolve(END) }
  }

  #next(): Promise<Read> {
    if (this.#pieces.length > 0) {
      const wasFull = this.full
      const cost = this.#cost
      const piece = this.#takePiece()
      this.#held -= piece.length
      this.#onHeld?.(this.#cost - cost)
      this.bytes += piece.length
      if (wasFull && !this.full) this.#onRoom()
      return Promise.resolve({ done: false, value: piece })
    }
    if (this.#state === 'whole') return Promise.resolve(END)
    if (this.#state !== 'receiving') return Promise.reject(new BrokenBodyError())
    const waiting = Promise.withResolvers<Read>()
    this.#waiting = waiting
    this.#onRoom()
    if (this.#waiting === undefined) return waiting.promise
    this.#deadline ??= new MovingDeadline(this.#clock, () => this.#onLate())
    this.#deadline.move(this.#stallTimeout)
    return waiting.promise
  }

  #takePiece(): Buffer {
    const [first = NOTHING] = this.#pieces
    if (first.length >= SMALL || this.#pieces.length === 1) this.#pieces.shift()
    else return Buffer.concat(this.#pieces.splice(0))
    return first
  }

  #end(state: 'whole' | 'broken'): void {
    this.#state = state
    this.#deadline?.cancel()
    const waiting = this.#waiting
    this.#waiting = undefined
    if (state === 'whole') waiting?.resolve(END)
    else waiting?.reject(new BrokenBodyError())
  }

  /** Fails the pending read. There may be none, because data does not stop the deadline. */
  #onLate(): void {
    const waiting = this.#waiting
    if (waiting === undefined) return
    if (this.#isDeferred()) {
      afterTurn(() => {
        if (this.#waiting === waiting) this.#onLate()
      })
      return
    }
    this.#waiting = undefined
    waiting.reject(new StalledBodyError())
  }
}
