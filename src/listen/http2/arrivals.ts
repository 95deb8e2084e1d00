import type { Exchange } from '../../http/exchange.ts'
import { afterTurn } from '../../system/clock.ts'
import { REQUEST_WORK } from '../../system/turn-budget.ts'
import { serveLater } from '../turn.ts'
import type { Http2Exchange } from './exchange.ts'
import type { Misuse } from './misuse.ts'

/** How requests are handed on. */
export interface Serving {
  readonly onExchange: (exchange: Exchange) => void
  /** Called for a bug in `onExchange`. Only that stream is reset. */
  readonly onBug: (error: unknown) => void
}

/** The exchanges whose head arrived in this turn of the event loop. */
export class Arrivals {
  readonly #handlers: Serving
  readonly #misuse: Misuse
  #first: Http2Exchange | undefined
  #last: Http2Exchange | undefined

  constructor(handlers: Serving, misuse: Misuse) {
    this.#handlers = handlers
    this.#misuse = misuse
  }

  add(exchange: Http2Exchange): void {
    if (this.#last === undefined) {
      this.#first = exchange
      afterTurn(this.#serve)
    } else this.#last.next = exchange
    this.#last = exchange
  }

  /** Serves the requests of this turn. All input is read first, so a stream that was reset in the meantime costs nothing. */
  readonly #serve = (): void => {
    let next = this.#first
    this.#first = undefined
    this.#last = undefined
    while (next !== undefined) {
      const exchange = next
      next = exchange.next
      exchange.next = undefined
      const turns = exchange.holding?.client.turns
      if (exchange.ended || turns === undefined) continue
      if (turns.take(REQUEST_WORK)) this.#pass(exchange)
      else serveLater(turns, exchange, this.#pass, this.#handlers.onBug)
    }
  }

  readonly #pass = (exchange: Http2Exchange): void => {
    if (this.#misuse.condemned) return
    try {
      this.#handlers.onExchange(exchange)
    } catch (error) {
      this.#handlers.onBug(error)
      exchange.cut()
    }
  }
}
