import type { Outcome } from '../../http/exchange.ts'
import { type Account, type Holding, UNTOUCHED_FOR } from '../../memory/account.ts'
import type { Clock } from '../../system/clock.ts'
import { LARGE_BUFFER } from '../../system/read-buffers.ts'
import type { ListenLimits } from '../connection-caps.ts'
import type { Http2Exchange } from './http2-exchange.ts'
import type { StreamFacts } from './http2-heads.ts'

interface OpenExchangesOptions {
  readonly clock: Clock
  readonly limits: ListenLimits
  readonly account: Account
  /** The memory of the session. */
  readonly holding: Holding
  /** Called when the queued responses exceed `maxQueuedBytes`. */
  readonly onFull: () => void
  /** Whether frames of the session wait to be written. */
  readonly hasFrames: () => boolean
  /** The number of bytes that the session has written. */
  readonly written: () => number
  /** See `StreamFacts`. */
  readonly onRead: (bytes: number) => void
  /** Called when a stream has closed and left, also for an exchange that never entered. */
  readonly onLeft: (exchange: Http2Exchange, end: Outcome) => void
}

/**
 * The open exchanges of a session, and their bytes that the client has not read. A `Set` would cost a hash for each exchange, and an array
 * that shrinks would be allocated anew for the next exchange.
 */
export class OpenExchanges implements StreamFacts<Http2Exchange> {
  readonly clock: Clock
  readonly #exchanges: (Http2Exchange | undefined)[] = []
  readonly #limits: ListenLimits
  readonly #account: Account
  readonly #holding: Holding
  readonly #onFull: () => void
  readonly onRead: (bytes: number) => void
  readonly #onLeft: (exchange: Http2Exchange, end: Outcome) => void
  readonly #hasFrames: () => boolean
  readonly #written: () => number
  /** While the reset of a cut response waits to be sent: when the client last read something (ms). Otherwise undefined. */
  #resetSince: number | undefined
  /** The time of the last check (ms). */
  #checkedAt = 0
  /** The number of bytes that the session had written at the last check. */
  #writtenThen = 0
  count = 0

  constructor({
    clock,
    limits,
    account,
    holding,
    onFull,
    hasFrames,
    written,
    onRead,
    onLeft,
  }: OpenExchangesOptions) {
    this.clock = clock
    this.#limits = limits
    this.#account = account
    this.#holding = holding
    this.#onFull = onFull
    this.#hasFrames = hasFrames
    this.#written = written
    this.onRead = onRead
    this.#onLeft = onLeft
  }

  all(): readonly Http2Exchange[] {
    return this.#exchanges.filter((each) => each !== undefined)
  }

  enter(exchange: Http2Exchange): void {
    exchange.index = this.count
    this.#exchanges[this.count] = exchange
    this.count += 1
  }

  onClosed(exchange: Http2Exchange, end: Outcome): void {
    const { index } = exchange
    if (index >= 0) {
      this.count -= 1
      const last = this.#exchanges[this.count]
      this.#exchanges[this.count] = undefined
      if (last !== undefined && last !== exchange) {
        this.#exchanges[index] = last
        last.index = index
      }
    }
    if (end === 'cut') this.#resetSince ??= this.#checkedAt
    this.#onLeft(exchange, end)
  }

  /** Body bytes of all streams that have arrived and wait to be read. */
  unreadBytes(): number {
    let unread = 0
    for (let i = 0; i < this.count; i += 1) unread += this.#exchanges[i]?.unreadBytes ?? 0
    return unread
  }

  /** Whether the responses of all streams together have few enough bytes queued (`maxQueuedBytes`). */
  mayQueue(): boolean {
    let queued = 0
    for (let i = 0; i < this.count; i += 1) queued += this.#exchanges[i]?.queued ?? 0
    this.#holding.set('responses', queued)
    if (queued <= this.#limits.maxQueuedBytes) return true
    this.#onFull()
    return false
  }

  /** False if a large piece for each open stream would take more than an eighth of `maxQueuedBytes`: many more streams can still begin. */
  takesLarge(): boolean {
    return this.count * LARGE_BUFFER <= this.#limits.maxQueuedBytes / 8
  }

  /**
   * Cuts each response that the client has not read for `idleTimeout`, or for `UNTOUCHED_FOR` if it is an own response and memory is short.
   * Node forgets a cut stream at once, but its reset waits while the client reads nothing, so that time counts, too.
   *
   * @param time in ms of any clock
   * @returns the longest time without a read (ms). For an own response the difference between `idleTimeout` and `UNTOUCHED_FOR` is added,
   * so that after any cut the connection of a client that does not read the reset ends equally soon.
   */
  cutUnread(time: number): number {
    const { idleTimeout } = this.#limits
    let longest = this.#unreadReset(time)
    const isShort = this.#account.stage !== undefined && this.#account.stage !== 'streams'
    for (const exchange of this.all()) {
      const unread = exchange.unreadFor(time)
      const isOwn = exchange.sentAt === 0
      const patience = isShort && isOwn ? Math.min(UNTOUCHED_FOR, idleTimeout) : idleTimeout
      if (unread >= patience) {
        if (patience < idleTimeout && !exchange.ended) this.#account.gaveUp('answers', 'answer')
        this.#resetSince ??= time - unread - idleTimeout + patience
        exchange.cut()
      }
      longest = Math.max(longest, unread + idleTimeout - patience)
    }
    return longest
  }

  /** How long (ms) the client has read nothing of the session while the reset of a cut response waits; 0 if no reset waits. */
  #unreadReset(time: number): number {
    const written = this.#written()
    const isStill = written === this.#writtenThen
    this.#writtenThen = written
    this.#checkedAt = time
    if (this.#resetSince === undefined) return 0
    if (!this.#hasFrames()) this.#resetSince = undefined
    // The client has read something, but not all bytes that are queued before the reset.
    else if (!isStill) this.#resetSince = time
    return this.#resetSince === undefined ? 0 : time - this.#resetSince
  }
}
