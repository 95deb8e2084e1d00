import { BrokenBodyError, StalledBodyError } from '../http/refusal.ts'
import { afterTurn, type Clock } from '../system/clock.ts'
import { MovingDeadline } from '../system/moving-deadline.ts'

type Read = IteratorResult<Buffer, undefined>

const END: Read = { done: true, value: undefined }
const NOTHING = Buffer.alloc(0)

/** For a body that waits for nothing. */
const NO_CLOCK = { monotonic: () => 0, after: () => ({ cancel() {} }) }

/** The cost of received bytes beside their content, by piece (bytes): a client may send pieces of one byte. */
export const PIECE = 128

/** A piece that is smaller (bytes) is joined with the pieces behind it: a copy of a few bytes costs less than another read of the body. */
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
   * @param onRoom called when a full body may be pushed to again: it was read, a read waits, or its bytes are dropped from now on
   * @param most the body is full with so many unread bytes, the cost of their pieces included; 0: it takes bytes only while a read waits
   * @param isDeferred whether bytes have arrived that are pushed in a later turn of the event loop
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

  /** Calls `onHeld` at once with the bytes that the body holds, and then with each change, which is negative if it holds fewer. */
  charge(onHeld: (change: number) => void): void {
    this.#onHeld = onHeld
    onHeld(this.#cost)
  }

  /** The empty body of a request without one. */
  static empty(): RequestBody {
    const body = new RequestBody(NO_CLOCK, () => {}, 0)
    body.finish()
    return body
  }

  /** More bytes of the body may come. */
  get unread(): boolean {
    return this.#unread
  }

  /** More bytes of the body may come, and it was partly read or broke off. The connection closes and does not skip the rest. */
  get begun(): boolean {
    return this.#unread && (this.#readBegun || this.#state === 'broken')
  }

  /** The rest of the body can never come, or was dropped. */
  get broken(): boolean {
    return this.#state === 'broken'
  }

  /** Bytes that have arrived, read or not; `Infinity` once all have. */
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

  /** The rest will never arrive, or its end is uncertain. Drops the buffered bytes; reading fails from now on. */
  break(): void {
    if (this.#state === 'broken') return
    this.drop()
    this.#onBroken?.()
  }

  /** A later listener replaces the earlier one. If the body is already broken, the listener is called at once. */
  onBroken(listener: () => void): void {
    this.#onBroken = listener
    if (this.broken) listener()
  }

  /** Discards the buffered bytes and all later ones. */
  drop(): void {
    this.#onHeld?.(-this.#cost)
    this.#pieces = []
    this.#held = 0
    this.#end('broken')
    this.#onRoom()
  }

  /** The bytes, read on demand. `stallTimeout` (ms) bounds a pause in the data; chunk framing alone does not end a pause. */
  within(stallTimeout: number): AsyncIterable<Buffer, undefined> {
    this.#stallTimeout = stallTimeout
    this.#readBegun = true
    return this
  }

  /** Waits, `within` its time, for the first bytes or the end, and fails as reading does. The bytes stay unread. */
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

  /** It may find no pending read, because the deadline keeps running when data arrives. */
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
