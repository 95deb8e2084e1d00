import type { Outcome } from '../../http/exchange.ts'
import { type Account, type Holding, PATIENCE } from '../../memory/account.ts'
import { LARGE_BUFFER } from '../../system/read-buffers.ts'
import type { ListenLimits } from '../connection-caps.ts'
import type { Http2Exchange } from './exchange.ts'
import type { StreamFacts } from './fields.ts'

interface OpenExchangesOptions {
  readonly limits: ListenLimits
  readonly account: Account
  /** What the session holds. */
  readonly holding: Holding
  /** The responses hold more than `max_queued_bytes`. */
  readonly onFull: () => void
  /** A stream has closed, also one that never entered. It is no longer among the open ones. */
  readonly onLeft: (exchange: Http2Exchange, end: Outcome) => void
}

/**
 * The open exchanges of a session, and the bytes that they hold until the client reads them. A `Set` would take a hash for each exchange, and
 * an array that shrinks would be allocated anew for the next.
 */
export class OpenExchanges implements StreamFacts<Http2Exchange> {
  readonly #exchanges: (Http2Exchange | undefined)[] = []
  readonly #limits: ListenLimits
  readonly #account: Account
  readonly #holding: Holding
  readonly #onFull: () => void
  readonly #onLeft: (exchange: Http2Exchange, end: Outcome) => void
  count = 0

  constructor({ limits, account, holding, onFull, onLeft }: OpenExchangesOptions) {
    this.#limits = limits
    this.#account = account
    this.#holding = holding
    this.#onFull = onFull
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
    this.#onLeft(exchange, end)
  }

  /** Whether the responses of all streams together have few enough bytes queued (`max_queued_bytes`). */
  mayQueue(): boolean {
    let queued = 0
    for (let i = 0; i < this.count; i += 1) queued += this.#exchanges[i]?.queued ?? 0
    this.#holding.set('responses', queued)
    if (queued <= this.#limits.maxQueuedBytes) return true
    this.#onFull()
    return false
  }

  /** Large pieces of all streams together take an eighth of `max_queued_bytes`, so that many more streams can begin. */
  takesLarge(): boolean {
    return this.count * LARGE_BUFFER <= this.#limits.maxQueuedBytes / 8
  }

  /**
   * Cuts each response that the client has not read for its patience: `idleTimeout`, or `PATIENCE` for an own answer while memory is short.
   * The stream of a cut response may stay open: its reset waits while the client reads nothing, and is never sent if nghttp2 has ended the
   * session for a broken frame, which Node 26.10 does not report while streams are open.
   *
   * @param time in ms of any clock
   * @returns the longest time without a read (ms). With a shorter patience, the difference to `idleTimeout` is added: so after any cut, the
   *   connection of a client that does not take the reset ends equally soon.
   */
  cutUnread(time: number): number {
    const { idleTimeout } = this.#limits
    let longest = 0
    const isShort = this.#account.stage !== undefined && this.#account.stage !== 'streams'
    for (const exchange of this.all()) {
      const unread = exchange.unreadFor(time)
      const isOwn = exchange.sentAt === 0
      const patience = isShort && isOwn ? Math.min(PATIENCE, idleTimeout) : idleTimeout
      if (unread >= patience) {
        if (patience < idleTimeout && !exchange.ended) this.#account.gaveUp('answers', 'answer')
        exchange.cut()
      }
      longest = Math.max(longest, unread + idleTimeout - patience)
    }
    return longest
  }
}
