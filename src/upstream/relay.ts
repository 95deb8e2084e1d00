import type { Exchange } from '../http/exchange.ts'
import { type Fields, withoutBlanks } from '../http/fields.ts'
import type { Dispatcher } from './connections.ts'
import { DeviceFault } from './failure.ts'
import { MalformedAnswer } from './malformed-answer.ts'
import { isDelimited } from './response-fields.ts'

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
export interface AnswerRules {
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
  readonly answer: AnswerRules
  readonly reader: ReaderPatience
  readonly onEnd: (end: RelayEnd) => void
}

const ASCII = /^[ -~]*$/

/** Interim responses forwarded per request; a device that sends more is not making progress. */
const MOST_INTERIM_RESPONSES = 16

/**
 * Carries one response from the device to the client, piece by piece: a client slower than the device stops the
 * device's connection, not memory.
 */
export class Relay implements Dispatcher.DispatchHandler {
  readonly #deps: RelayDependencies
  #controller: Dispatcher.DispatchController | undefined
  #silent = true
  #done = false
  #interim = 0
  #waitsForDrain = false
  #stall: NodeJS.Timeout | undefined

  constructor(deps: RelayDependencies) {
    this.#deps = deps
    deps.exchange.onEnd(() => this.#clientLeft())
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#deps.exchange.ended) controller.abort(new Error('the client has left'))
  }

  onResponseStarted(): void {
    this.#silent = false
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    reason = '',
  ): void {
    const { exchange, answer } = this.#deps
    const sent = rawFields(controller.rawHeaders)
    if (status < 200) {
      this.#inform(controller, status, answer.project(trimmedFields(sent), status))
      return
    }
    if (!isDelimited(sent)) throw new MalformedAnswer()
    try {
      const fields = answer.project(trimmedFields(sent), status)
      exchange.begin({ status, reason: reasonBytes(reason), fields })
    } catch {
      // A status or field that the client's protocol cannot carry.
      throw new MalformedAnswer()
    }
    answer.onHead()
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { exchange } = this.#deps
    if (exchange.write(chunk)) return
    controller.pause()
    clearTimeout(this.#stall)
    this.#awaitReader(0)
    if (this.#waitsForDrain) return
    this.#waitsForDrain = true
    exchange.onDrain(() => {
      clearTimeout(this.#stall)
      controller.resume()
    })
  }

  onResponseEnd(): void {
    this.#deps.exchange.end()
    this.#finish({ kind: 'relayed' })
  }

  onResponseError(_controller: unknown, error: unknown): void {
    const { exchange } = this.#deps
    if (exchange.ended) this.#finish({ kind: 'abandoned' })
    else if (!exchange.answered) {
      this.#finish({ kind: 'failed', error: withinHead(error), silent: this.#silent })
    } else {
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

  #inform(controller: Dispatcher.DispatchController, status: number, fields: Fields): void {
    this.#interim += 1
    if (this.#interim > MOST_INTERIM_RESPONSES) controller.abort(new DeviceFault('http_protocol_error'))
    // `100 Continue` answers an expectation that is never passed on.
    else if (status !== 100) this.#deps.exchange.inform(status, fields)
  }

  #clientLeft(): void {
    clearTimeout(this.#stall)
    if (this.#done) return
    // Not sent yet: its connection is still being opened, and `onRequestStart` will abort it. Nobody need wait for that.
    if (this.#controller === undefined) this.#finish({ kind: 'abandoned' })
    else this.#controller.abort(new Error('the client has left'))
  }

  #finish(end: RelayEnd): void {
    if (this.#done) return
    this.#done = true
    clearTimeout(this.#stall)
    this.#deps.onEnd(end)
  }
}

/** undici adds up the digits of all lengths that it sees, and so speaks of a wrong one before there is a body. */
function withinHead(error: unknown): unknown {
  const lengths = error instanceof Error && 'code' in error ? error.code : undefined
  return lengths === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' ? new MalformedAnswer() : error
}

/**
 * undici decodes the reason phrase as UTF-8. Here every byte is a character again, as in the fields. Bytes that were no
 * UTF-8 are lost by then; nothing stands in for them, because a reason phrase means nothing (RFC 9112 §4).
 */
function reasonBytes(reason: string): string {
  if (ASCII.test(reason)) return reason
  return reason.includes('\ufffd') ? '' : Buffer.from(reason, 'utf8').toString('latin1')
}

/** undici leaves blanks behind a value, and HTTP/2 clients refuse an answer that has them (RFC 9113 §8.2.1). */
function trimmedFields(fields: string[]): Fields {
  for (let i = 1; i < fields.length; i += 2) fields[i] = withoutBlanks(fields[i] ?? '')
  return fields
}

/** undici hands header bytes over as buffers; every byte is a character, as in Node's own `rawHeaders`. */
function rawFields(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (!Array.isArray(raw)) return []
  return raw.map((bytes) => (typeof bytes === 'string' ? bytes : bytes.toString('latin1')))
}
