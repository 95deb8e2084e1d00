import type { ResponseHandler, Transfer } from '../device/response-handler.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'

/** How one attempt at the device ended. */
export type RelayEnd =
  | { readonly kind: 'relayed' }
  /** The client has no response yet, so the caller may refuse it. `silent`: the device sent no byte. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly silent: boolean }
  /** The response broke off after its head was sent, and the client sees it broken. */
  | { readonly kind: 'broken'; readonly error: unknown }
  /** The client left, or was answered otherwise, before the response ended. */
  | { readonly kind: 'abandoned' }

/** How the head of the device's response is handled. */
export interface RelayRules {
  /** Turns the device's header fields into the client's. */
  project(device: Fields, status: number): string[]
  /** Called when the exchange has taken the head of the final response. */
  onHead(): void
}

/** How long a client may stop reading its response while its request holds a place at the device. Times in ms. */
export interface ReaderPatience {
  readonly longest: number
  /** The bound while other requests wait for a place. */
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
 * Relays one response from the device to the client, piece by piece. A client that is slower than the device pauses the
 * device's connection, so the response does not pile up in memory.
 */
export class Relay implements ResponseHandler {
  readonly #deps: RelayDependencies
  #transfer: Transfer | undefined
  #done = false
  /** The client's response is the device's, not a refusal. */
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
      // For example a status that HTTP/2 cannot carry. Only this response fails; the rules by which the device is read stay.
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

  /** Cuts a client that reads nothing: after `whenCrowded` if other requests wait for its place, after `longest` anyway. */
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
