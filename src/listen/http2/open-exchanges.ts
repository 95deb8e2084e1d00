import type { Outcome } from '../../http/exchange.ts'
import { type Account, type Holding, PATIENCE } from '../../memory/account.ts'
import type { Clock } from '../../system/clock.ts'
import { LARGE_BUFFER } from '../../system/read-buffers.ts'
import type { ListenLimits } from '../connection-caps.ts'
import type { Http2Exchange } from './exchange.ts'
import type { StreamFacts } from './fields.ts'

interface OpenExchangesOptions {
  readonly clock: Clock
  readonly limits: ListenLimits
  readonly account: Account
  /** What the session holds. */
  readonly holding: Holding
  /** The responses hold more than `maxQueuedBytes`. */
  readonly onFull: () => void
  /** Whether frames of the session wait to be written. */
  readonly hasFrames: () => boolean
  /** The bytes that the session has written. */
  readonly written: () => number
  /** See `StreamFacts`. */
  readonly onRead: (bytes: number) => void
  /** A stream has closed, also one that never entered. It is no longer among the open ones. */
  readonly onLeft: (exchange: Http2Exchange, end: Outcome) => void
}

/**
 * The open exchanges of a session, and the bytes that they hold until the client reads them. A `Set` would take a hash for each exchange, and
 * an array that shrinks would be allocated anew for the next.
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
  /** When the client last read something (ms), while the reset of a cut response waits to be sent; undefined while none waits. */
  #resetSince: number | undefined
  /** The time of the last check (ms), and what was written by then. */
  #checkedAt = 0
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

  /** Bytes of the bodies of all streams that have arrived and wait to be read. */
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

  /** Large pieces of all streams together take an eighth of `maxQueuedBytes`, so that many more streams can begin. */
  takesLarge(): boolean {
    return this.count * LARGE_BUFFER <= this.#limits.maxQueuedBytes / 8
  }

  /**
   * Cuts each response that the client has not read for its patience: `idleTimeout`, or `PATIENCE` for an own answer while memory is short.
   * Node forgets a cut stream at once, but its reset waits while the client reads nothing, so that time goes on.
   *
   * @param time in ms of any clock
   * @returns the longest time without a read (ms). With a shorter patience, the difference to `idleTimeout` is added: so after any cut, the
   *   connection of a client that does not take the reset ends equally soon.
   */
  cutUnread(time: number): number {
    const { idleTimeout } = this.#limits
    let longest = this.#unreadReset(time)
    const isShort = this.#account.stage !== undefined && this.#account.stage !== 'streams'
    for (const exchange of this.all()) {
      const unread = exchange.unreadFor(time)
      const isOwn = exchange.sentAt === 0
      const patience = isShort && isOwn ? Math.min(PATIENCE, idleTimeout) : idleTimeout
      if (unread >= patience) {
        if (patience < idleTimeout && !exchange.ended) this.#account.gaveUp('answers', 'answer')
        this.#resetSince ??= time - unread - idleTimeout + patience
        exchange.cut()
      }
      longest = Math.max(longest, unread + idleTimeout - patience)
    }
    return longest
  }

  /** How long (ms) the client has read nothing of the session, while the reset of a cut response waits; 0 if none does. */
  #unreadReset(time: number): number {
    const written = this.#written()
    const isStill = written === this.#writtenThen
    this.#writtenThen = written
    this.#checkedAt = time
    if (this.#resetSince === undefined) return 0
    if (!this.#hasFrames()) this.#resetSince = undefined
    // It has read something, though not all that waits before the reset.
    else if (!isStill) this.#resetSince = time
    return this.#resetSince === undefined ? 0 : time - this.#resetSince
  }
}
