import { BrokenBodyError, StalledBodyError } from '../../http/exchange.ts'

/** How many unread bytes of a body are kept. Beyond that the connection is not read. */
const MOST_UNREAD = 64 * 1024

interface Waiting {
  readonly resolve: (result: IteratorResult<Buffer, undefined>) => void
  readonly reject: (error: Error) => void
}

const END: IteratorResult<Buffer, undefined> = { done: true, value: undefined }

/** The body of one request: the connection pushes bytes in, the exchange reads them. */
export class Http1Body implements AsyncIterable<Buffer, undefined> {
  /** Bytes read so far. */
  bytes = 0
  readonly #onRoom: () => void
  #pieces: Buffer[] = []
  #held = 0
  #state: 'coming' | 'whole' | 'broken' = 'coming'
  #unread = true
  #asked = false
  #waiting: Waiting | undefined
  #stallTimeout = 0
  /** One timer for the whole body. Each wait for data refreshes it. */
  #timer: NodeJS.Timeout | undefined
  #onBroken: (() => void) | undefined

  /** `onRoom` is called when a full body has room again. */
  constructor(onRoom: () => void) {
    this.#onRoom = onRoom
  }

  /** The body of a request that has none. */
  static empty(): Http1Body {
    const body = new Http1Body(() => {})
    body.finish()
    return body
  }

  /** More bytes of the body may come. */
  get unread(): boolean {
    return this.#unread
  }

  /** More bytes of the body may come, and it was read in part or broke off, so the connection cannot skip it. */
  get begun(): boolean {
    return this.#unread && (this.#asked || this.#state === 'broken')
  }

  /** The rest of the body can never come, or was dropped. */
  get broken(): boolean {
    return this.#state === 'broken'
  }

  /** The client has to wait. */
  get full(): boolean {
    return this.#held > MOST_UNREAD
  }

  push(data: Buffer): void {
    if (this.#state !== 'coming') return
    const waiting = this.#waiting
    if (waiting === undefined) {
      this.#pieces.push(data)
      this.#held += data.length
    } else {
      this.#waiting = undefined
      this.bytes += data.length
      waiting.resolve({ done: false, value: data })
    }
  }

  /** All bytes of the body have come. */
  finish(): void {
    this.#unread = false
    if (this.#state === 'coming') this.#end('whole')
  }

  /** The rest will never come, or cannot be told from the next request. Kept bytes are dropped, and reading fails. */
  break(): void {
    if (this.#state === 'broken') return
    this.drop()
    this.#onBroken?.()
  }

  /** A later listener replaces the earlier one. If the body is broken already, the listener is called at once. */
  onBroken(listener: () => void): void {
    this.#onBroken = listener
    if (this.broken) listener()
  }

  /** Discards the kept bytes and all later ones. */
  drop(): void {
    this.#pieces = []
    this.#held = 0
    this.#end('broken')
  }

  /** The bytes, read on demand. `stallTimeout` (ms) bounds a pause in the data; chunk framing without data does not end a pause. */
  within(stallTimeout: number): AsyncIterable<Buffer, undefined> {
    if (stallTimeout !== this.#stallTimeout) this.#forgetTimer()
    this.#stallTimeout = stallTimeout
    this.#asked = true
    return this
  }

  [Symbol.asyncIterator](): AsyncIterator<Buffer, undefined> {
    return { next: () => this.#next(), return: () => Promise.resolve(END) }
  }

  #next(): Promise<IteratorResult<Buffer, undefined>> {
    const piece = this.#pieces.shift()
    if (piece !== undefined) {
      const wasFull = this.full
      this.#held -= piece.length
      this.bytes += piece.length
      if (wasFull && !this.full) this.#onRoom()
      return Promise.resolve({ done: false, value: piece })
    }
    if (this.#state === 'whole') return Promise.resolve(END)
    if (this.#state !== 'coming') return Promise.reject(new BrokenBodyError())
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      if (this.#timer === undefined) this.#timer = setTimeout(() => this.#stalled(), this.#stallTimeout)
      else this.#timer.refresh()
    })
  }

  #end(state: 'whole' | 'broken'): void {
    this.#state = state
    this.#forgetTimer()
    const waiting = this.#waiting
    this.#waiting = undefined
    if (state === 'whole') waiting?.resolve(END)
    else waiting?.reject(new BrokenBodyError())
  }

  #forgetTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** The timer is not stopped when data comes, so it may fire while no read is waiting. */
  #stalled(): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.reject(new StalledBodyError())
  }
}
