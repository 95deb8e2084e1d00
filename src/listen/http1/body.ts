import { BrokenBodyError, StalledBodyError } from '../../http/exchange.ts'

/** So much of a body (bytes) may have come and not be read; beyond it the client has to wait. */
const MOST_UNREAD = 64 * 1024

interface Waiting {
  readonly resolve: (result: IteratorResult<Buffer, undefined>) => void
  readonly reject: (error: Error) => void
}

const END: IteratorResult<Buffer, undefined> = { done: true, value: undefined }

/** The body of one request, from the connection that brings it to whoever reads it. */
export class Http1Body implements AsyncIterable<Buffer, undefined> {
  /** Bytes handed out so far. */
  bytes = 0
  readonly #onRoom: () => void
  #pieces: Buffer[] = []
  #held = 0
  #state: 'coming' | 'whole' | 'broken' = 'coming'
  #unread = true
  #asked = false
  #waiting: Waiting | undefined
  #stallTimeout = 0
  /** One for the whole body: as long as data comes, it is only started afresh. */
  #timer: NodeJS.Timeout | undefined
  #onBroken: (() => void) | undefined

  /** `onRoom` is told when something was read of a body that was full. */
  constructor(onRoom: () => void) {
    this.#onRoom = onRoom
  }

  /** The body of a request that has none. */
  static empty(): Http1Body {
    const body = new Http1Body(() => {})
    body.finish()
    return body
  }

  /** There may be bytes of it that have not come. */
  get unread(): boolean {
    return this.#unread
  }

  /** There may be bytes of it that have not come, and somebody began to read it: it cannot just be skipped. */
  get begun(): boolean {
    return this.#unread && (this.#asked || this.#state === 'broken')
  }

  /** The rest of it can never come, or has been dropped. */
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

  /** All of it has come. */
  finish(): void {
    this.#unread = false
    if (this.#state === 'coming') this.#end('whole')
  }

  /** The rest will never come, or cannot be told from the next request: nothing of what is here is handed out any more. */
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

  /** Nobody wants it any more: what comes of it is thrown away. */
  drop(): void {
    this.#pieces = []
    this.#held = 0
    this.#end('broken')
  }

  /** What can be read on demand. A pause is one in data: chunks that bring none do not end it. Times in ms. */
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

  /** The timer goes on while data comes, so that it may fire when nobody waits. */
  #stalled(): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.reject(new StalledBodyError())
  }
}
