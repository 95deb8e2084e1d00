import type { Http2Exchange } from './exchange.ts'

/** The open exchanges of a session. A `Set` would take a hash for each, and an array that shrinks would be allocated anew for the next. */
export class OpenExchanges {
  readonly #exchanges: (Http2Exchange | undefined)[] = []
  count = 0

  at(place: number): Http2Exchange | undefined {
    return this.#exchanges[place]
  }

  all(): readonly Http2Exchange[] {
    return this.#exchanges.filter((each) => each !== undefined)
  }

  enter(exchange: Http2Exchange): void {
    exchange.place = this.count
    this.#exchanges[this.count] = exchange
    this.count += 1
  }

  /** The last exchange takes the place. Does nothing if it has none. */
  leave({ place }: Http2Exchange): void {
    if (place < 0) return
    this.count -= 1
    const last = this.#exchanges[this.count]
    this.#exchanges[this.count] = undefined
    if (last === undefined || last.place === place) return
    this.#exchanges[place] = last
    last.place = place
  }
}
