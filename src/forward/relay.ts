import type { ResponseHandler, Transfer } from '../device/response-handler.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'

/** How one attempt at the device ended. */
export type RelayEnd =
  | { readonly kind: 'relayed' }
  /** Nothing was answered yet, and may be by somebody else; `silent` when not a byte came from the device. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly silent: boolean }
  /** The transfer broke after its head was sent: the client was shown a broken transfer. */
  | { readonly kind: 'broken'; readonly error: unknown }
  /** The client left first. */
  | { readonly kind: 'abandoned' }

/** What becomes of the head of the device's answer. */
export interface RelayRules {
  /** The device's header fields as the client shall see them. */
  project(device: Fields, status: number): string[]
  /** The device has begun to answer. */
  onHead(): void
}

/** How long a client may read nothing of its download while it holds a place at the device. Times in ms. */
export interface ReaderPatience {
  readonly longest: number
  /** While others wait for a place. */
  readonly whenCrowded: number
  readonly isCrowded: () => boolean
}

export interface RelayDependencies {
  readonly exchange: Exchange
  readonly rules: RelayRules
  readonly reader: ReaderPatience
  readonly onEnd: (end: RelayEnd) => void
}

/**
 * Carries one response from the device to the client, piece by piece: a client slower than the device stops the
 * device's connection, not memory.
 */
export class Relay implements ResponseHandler {
  readonly #deps: RelayDependencies
  #transfer: Transfer | undefined
  #done = false
  /** What the client was answered with is the device's answer. */
  #begun = false
  #listensForDrain = false
  #stall: NodeJS.Timeout | undefined

  constructor(deps: RelayDependencies) {
    this.#deps = deps
    deps.exchange.onEnd(() => this.#clientLeft())
  }

  /** The attempt begins. */
  start(transfer: Transfer): void {
    this.#transfer = transfer
  }

  inform(status: number, device: Fields): void {
    const { exchange, rules } = this.#deps
    exchange.inform(status, rules.project(device, status))
  }

  head(status: number, reason: string, device: Fields): void {
    const { exchange, rules } = this.#deps
    this.#begun = !exchange.answered
    try {
      exchange.begin({ status, reason, fields: rules.project(device, status) })
    } catch (error) {
      // Such as a status that HTTP/2 cannot carry. Only this answer fails; the choice of the parser stays as it is.
      this.#transfer?.abort(error)
      return
    }
    rules.onHead()
  }

  data(chunk: Buffer): void {
    const { exchange } = this.#deps
    if (exchange.write(chunk)) return
    this.#transfer?.pause()
    clearTimeout(this.#stall)
    this.#awaitReader(0)
    if (this.#listensForDrain) return
    this.#listensForDrain = true
    exchange.onDrain(() => {
      clearTimeout(this.#stall)
      if (!this.#done) this.#transfer?.resume()
    })
  }

  end(last?: Buffer): void {
    this.#deps.exchange.end(last)
    this.#finish({ kind: 'relayed' })
  }

  failed(error: unknown, silent: boolean): void {
    const { exchange } = this.#deps
    if (!exchange.answered) this.#finish({ kind: 'failed', error, silent })
    else if (exchange.ended || !this.#begun) this.#finish({ kind: 'abandoned' })
    else {
      exchange.cut()
      this.#finish({ kind: 'broken', error })
    }
  }

  /** A client that reads nothing keeps its place at the device for a while; for less of one if others wait for it. */
  #awaitReader(waited: number): void {
    const { exchange, reader } = this.#deps
    const until = Math.min(waited + reader.whenCrowded, reader.longest)
    this.#stall = setTimeout(() => {
      if (until >= reader.longest || reader.isCrowded()) exchange.cut()
      else this.#awaitReader(until)
    }, until - waited)
  }

  #clientLeft(): void {
    clearTimeout(this.#stall)
    if (!this.#done) this.#transfer?.abort(new Error('the client has left'))
  }

  #finish(end: RelayEnd): void {
    if (this.#done) return
    this.#done = true
    clearTimeout(this.#stall)
    this.#deps.onEnd(end)
  }
}
