import type { ClientSide, Forward, ResponseHead } from '../http/exchange.ts'
import { type Fields, fieldValues, keepFields, lengthIn } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import { Blocks } from './buffered-body.ts'
import { bodyLength, LONGEST_SHARED, mayKeep, mayShare, type Reader } from './share.ts'

/** What the responses that are shared at one service have in common. */
export interface FanOutRules {
  readonly clock: Clock
  /** How long (ms) others may join a response without a length, from its head on. */
  readonly joinedFor: number
  /** How long (ms) others may join a whole response. */
  readonly keptFor: number
  /** A response leaves it when it has no reader and no other client may join. */
  readonly live: Set<FanOut>
  /** A reader that has nothing of this response has to ask by itself. */
  readonly onAlone: (reader: Reader) => void
  /** A reader that did not ask gets the response. */
  readonly onShared: (isKept: boolean) => void
  /** A reader was too slow for this long response, which broke off for it. */
  readonly onCut: (request: Forward) => void
}

const ignore = (): void => {}

/**
 * One response of the device for several clients. To the forwarder, it is the client that asked. Each reader gets the head and the body at
 * its own speed: the fastest one sets the pace at which the device is read, a slow one reads what is buffered.
 */
export class FanOut implements ClientSide {
  readonly asker: Reader
  readonly #rules: FanOutRules
  readonly #readers = new Set<Reader>()
  readonly #body = new Blocks()
  #head: ResponseHead | undefined
  #headAt = 0
  /** Its head does not say how long the body is. */
  #endless = false
  /** The response is complete since this time. */
  #wholeAt: number | undefined
  /** Others may join, so the body is held from its beginning. */
  open = true
  #kept: NodeJS.Timeout | undefined
  #onDrain = ignore
  #onEnd: (() => void)[] = []

  constructor(asker: Reader, rules: FanOutRules) {
    this.asker = asker
    this.#rules = rules
    this.#add(asker)
  }

  /** Whether another client may get this response. */
  get joinable(): boolean {
    if (!this.open || (this.ended && this.#wholeAt === undefined)) return false
    const { clock, joinedFor } = this.#rules
    return !this.#endless || this.#wholeAt !== undefined || clock.monotonic() - this.#headAt <= joinedFor
  }

  join(reader: Reader): void {
    this.#add(reader)
    if (this.#head !== undefined) this.#start(reader, this.#head)
  }

  /** Lets no other client join. */
  close(): void {
    this.open = false
    clearTimeout(this.#kept)
    this.#kept = undefined
    if (this.ended) this.#rules.live.delete(this)
  }

  /** Removes the readers that have nothing of the response yet, the asker first, and returns them. */
  dismiss(): readonly Reader[] {
    if (this.#head !== undefined) return []
    const waiting = [...this.#readers]
    for (const reader of waiting) this.#remove(reader)
    return waiting
  }

  get answered(): boolean {
    return this.#head !== undefined || [...this.#readers].every(({ exchange }) => exchange.answered)
  }

  get ended(): boolean {
    return this.#readers.size === 0
  }

  /** Its rate-limit fields are those of the asker. */
  inform(status: number, fields: Fields): void {
    this.asker.exchange.inform(status, fields)
  }

  begin(head: ResponseHead): void {
    this.#head = head
    this.#headAt = this.#rules.clock.monotonic()
    const length = bodyLength(head, this.asker.exchange.head.method)
    this.#endless = length === undefined
    if (!mayShare(head) || (length ?? 0) > LONGEST_SHARED) {
      this.open = false
      for (const reader of this.#readers) if (reader !== this.asker) this.#leave(reader)
    }
    for (const reader of this.#readers) this.#start(reader, head)
  }

  /**
   * A body that is short by its length is read without a pause: it is held anyway, and the device is free sooner. Any other pauses the
   * device while all readers are full.
   */
  write(chunk: Buffer): boolean {
    this.#body.add(chunk)
    for (const reader of this.#readers) this.#pump(reader)
    if (this.#body.size > LONGEST_SHARED) this.open = false
    if (!this.open) this.#dropBehind()
    return (this.open && !this.#endless) || [...this.#readers].some(({ full }) => !full)
  }

  end(last?: Buffer): void {
    if (last !== undefined) this.#body.add(last)
    this.#wholeAt = this.#rules.clock.monotonic()
    const { keptFor } = this.#rules
    const isShort = this.open && this.#body.size <= LONGEST_SHARED
    if (isShort && keptFor > 0 && this.#head !== undefined && mayKeep(this.#head)) {
      this.#kept = setTimeout(() => this.close(), keptFor).unref()
    } else this.close()
    for (const reader of this.#readers) this.#pump(reader)
  }

  /** Called after the head has come: every reader has it. */
  cut(): void {
    this.open = false
    for (const { exchange } of this.#readers) exchange.cut()
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener
  }

  onEnd(listener: () => void): void {
    if (this.ended) listener()
    else this.#onEnd.push(listener)
  }

  #add(reader: Reader): void {
    this.#readers.add(reader)
    reader.exchange.onEnd(() => this.#finish(reader))
  }

  #finish(reader: Reader): void {
    if (this.#remove(reader)) reader.listener.ended(reader.exchange, undefined)
  }

  /** False if it was removed before. */
  #remove(reader: Reader): boolean {
    const removed = this.#readers.delete(reader)
    if (removed && this.ended) {
      for (const listener of this.#onEnd.splice(0)) listener()
      if (this.#kept === undefined) this.close()
    }
    return removed
  }

  #leave(reader: Reader): void {
    this.#remove(reader)
    this.#rules.onAlone(reader)
  }

  #start(reader: Reader, head: ResponseHead): void {
    const { exchange } = reader
    // Its grant was revoked while it waited.
    if (exchange.answered) {
      this.#finish(reader)
      return
    }
    const isShared = reader !== this.asker
    try {
      exchange.begin(isShared ? this.#headFor(exchange, head) : head)
    } catch {
      // For example a status that HTTP/2 cannot carry.
      this.#leave(reader)
      return
    }
    if (isShared) this.#note(exchange)
    exchange.onDrain(() => {
      reader.full = false
      this.#pump(reader)
      if (!reader.full) this.#onDrain()
    })
    this.#pump(reader)
    // The device is paused while all readers are full.
    if (!reader.full) this.#onDrain()
  }

  /** The head with the reader's own request id where the device echoes the asker's. A kept response also gets its age (RFC 9111 §5.1). */
  #headFor({ requestId }: Forward, head: ResponseHead): ResponseHead {
    const { exchange: asker } = this.asker
    const wholeAt = this.#wholeAt
    if (wholeAt === undefined && !head.fields.includes(asker.requestId)) return head
    let fields = head.fields.map((text) => (text === asker.requestId ? requestId : text))
    if (wholeAt !== undefined) {
      const before = lengthIn(fieldValues(fields, 'age')[0] ?? '') ?? 0
      const age = before + Math.floor((this.#rules.clock.monotonic() - wholeAt) / 1000)
      fields = [...keepFields(fields, (name) => name !== 'age'), 'Age', String(age)]
    }
    return { ...head, fields, reusable: false }
  }

  /** For the record of a reader that did not ask: when the device was asked, and what it answered. */
  #note(exchange: Forward): void {
    const { sentAt, deviceStatus, tolerant, streamAt } = this.asker.exchange
    Object.assign(exchange, {
      sentAt,
      deviceStatus,
      tolerant,
      streamAt,
      headAt: this.#rules.clock.monotonic(),
    })
    this.#rules.onShared(this.#wholeAt !== undefined)
  }

  #pump(reader: Reader): void {
    const { exchange } = reader
    while (!reader.full && !exchange.ended) {
      const piece = this.#body.from(reader.sent)
      reader.sent += piece?.length ?? 0
      const isLast = this.#wholeAt !== undefined && reader.sent === this.#body.size
      if (isLast) exchange.end(piece)
      if (isLast || piece === undefined) return
      reader.full = !exchange.write(piece)
    }
  }

  /** Holds of a long body only what some reader lacks. Cuts off readers that are too far behind the first one. */
  #dropBehind(): void {
    let least = this.#body.size
    const most = Math.max(...[...this.#readers].map(({ sent }) => sent))
    for (const { exchange, sent } of this.#readers) {
      if (most - sent > LONGEST_SHARED) {
        this.#rules.onCut(exchange)
        exchange.cut()
      } else least = Math.min(least, sent)
    }
    this.#body.dropBefore(least)
  }
}
