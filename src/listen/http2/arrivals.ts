import type { Exchange } from '../../http/exchange.ts'
import { afterTurn } from '../../system/clock.ts'
import { serveInTurn } from '../turn.ts'
import type { Http2Exchange } from './http2-exchange.ts'
import type { Misuse } from './misuse.ts'

/** The handlers that a session calls for its requests. */
export interface Serving {
  readonly onExchange: (exchange: Exchange) => void
  /** Called with an unexpected error of `onExchange`. Only the stream of the request is reset. */
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

  /** Serves the requests of this turn, after all input of the turn is read: a stream that the client has reset by then costs nothing. */
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
      serveInTurn(turns, exchange, this.#pass, this.#handlers.onBug)
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
