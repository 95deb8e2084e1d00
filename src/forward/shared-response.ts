import type { ClientSide, Forward, ResponseHead } from '../http/exchange.ts'
import { type Fields, fieldValues, keepFields, lengthIn } from '../http/fields.ts'
import type { Clock, Timer } from '../system/clock.ts'
import { Blocks } from './buffered-body.ts'
import { bodyLength, LONGEST_SHARED, mayKeep, mayShare, type Reader } from './share.ts'

/** The rules and events of all shared responses of one service. */
export interface SharingRules {
  readonly clock: Clock
  /** A response without a length is a stream from this time (ms) after its head. */
  readonly streamAfter: number
  /** How long (ms) others may join a whole response. */
  readonly keptFor: number
  /** Responses with a copy in memory. */
  readonly held: Set<SharedResponse>
  /** Called for a client that waited and now has to ask for itself. */
  readonly onAlone: (reader: Reader) => void
  /** Called when a client gets the response without asking the device. */
  readonly onShared: (isKept: boolean) => void
}

/** A whole response for others. */
interface Whole {
  readonly head: ResponseHead
  readonly body: Blocks
  /** When its last bytes came (ms on the monotonic clock). */
  readonly at: number
}

/** Sends the copy to one client, at the client's speed. */
class Delivery {
  readonly #exchange: Forward
  readonly #copy: Blocks
  #sent = 0
  /** The client reads more slowly than Postern writes. */
  full = false

  constructor(exchange: Forward, copy: Blocks) {
    this.#exchange = exchange
    this.#copy = copy
  }

  /** Whether the client has not got all of the copy yet. */
  get behind(): boolean {
    return this.#sent < this.#copy.size
  }

  /** @param isWhole the copy is the whole body */
  pump(isWhole: boolean): void {
    while (!this.full && !this.#exchange.ended) {
      const piece = this.#copy.from(this.#sent)
      this.#sent += piece?.length ?? 0
      const isLast = isWhole && !this.behind
      if (isLast) this.#exchange.end(piece)
      if (isLast || piece === undefined) return
      this.full = !this.#exchange.write(piece)
    }
  }
}

const ignore = (): void => {}

/**
 * One response of the device for several clients. The forwarder takes it for the client that asked first. That client gets the response as
 * it arrives. A copy is collected beside it, and the other clients get the copy when it is whole, each at its own speed. A response that is
 * not for others, is longer than `LONGEST_SHARED` or becomes a stream goes on for the first client alone, and the clients that wait ask for
 * themselves.
 */
export class SharedResponse implements ClientSide {
  readonly asker: Reader
  readonly #rules: SharingRules
  /** The clients that have got nothing of the response yet. */
  readonly #waiting = new Set<Reader>()
  /** The clients that have got the head, until their responses end. */
  readonly #reading = new Set<Reader>()
  /** Undefined once it is for no other client, and the asker has got all of it. */
  #copy: Blocks | undefined = new Blocks()
  /** The bytes of the copy that the asker's account is charged for. */
  #charged = 0
  /** The copy is for other clients, too. */
  #shared = true
  #ofAsker: Delivery | undefined
  #head: ResponseHead | undefined
  /** The last bytes have come. */
  #complete = false
  /** What the others get. Undefined until the response is complete, and for one that is for the asker alone. */
  #whole: Whole | undefined
  /** Other clients may join. */
  open = true
  /** Ends the sharing of a response without a length, or the keeping of a whole one. */
  #timer: Timer | undefined
  #onDrain = ignore
  #onEnd: (() => void)[] = []

  constructor(asker: Reader, rules: SharingRules) {
    this.asker = asker
    this.#rules = rules
    this.join(asker)
  }

  /** Adds a client, which gets the response at once if it is whole. */
  join(reader: Reader): void {
    this.#waiting.add(reader)
    reader.exchange.onEnd(() => this.#finish(reader))
    if (this.#whole !== undefined) this.#deliver(reader, this.#whole, true)
  }

  /** Lets no other client join. */
  close(): void {
    this.open = false
    if (this.#complete) this.#timer?.cancel()
    if (this.ended) this.#rules.held.delete(this)
  }

  /** Removes the clients that have nothing of the response, the asker first, and returns them. */
  dismiss(): readonly Reader[] {
    const waiting = [...this.#waiting]
    for (const reader of waiting) this.#remove(reader)
    return waiting
  }

  get answered(): boolean {
    return this.#head !== undefined || [...this.#waiting].every(({ exchange }) => exchange.answered)
  }

  get ended(): boolean {
    return this.#waiting.size === 0 && this.#reading.size === 0
  }

  /** The rate-limit fields in it are those of the asker. */
  inform(status: number, fields: Fields): void {
    this.asker.exchange.inform(status, fields)
  }

  /** Throws what the `begin` of the asker throws, for example for a status that HTTP/2 cannot carry. */
  begin(head: ResponseHead): void {
    const { asker } = this
    const { exchange } = asker
    const length = bodyLength(head, exchange.head.method)
    if (!mayShare(head) || (length ?? 0) > LONGEST_SHARED) this.#keepForAsker()
    try {
      if (this.#waiting.has(asker) && this.#begin(asker, head)) this.#startAsker()
    } catch (error) {
      this.#keepForAsker()
      throw error
    }
    this.#head = head
    if (length === undefined && this.#shared)
      this.#timer = this.#rules.clock.after(this.#rules.streamAfter, () => this.#keepForAsker())
  }

  /** A copy is short, so large pieces would not pay. */
  get takesLarge(): boolean {
    return this.#copy === undefined && this.asker.exchange.takesLarge
  }

  /** While the copy is for others, the device is not paused: the copy is short, and the device is free sooner. */
  write(chunk: Buffer): boolean {
    if (this.#copy === undefined) return this.asker.exchange.write(chunk)
    this.#copy.add(chunk)
    this.#charge()
    this.#bound(this.#copy)
    this.#pumpAsker()
    return this.#shared || this.#ofAsker?.full !== true
  }

  end(last?: Buffer): void {
    this.#timer?.cancel()
    this.#complete = true
    const [head, copy] = [this.#head, this.#copy]
    if (copy === undefined) {
      this.asker.exchange.end(last)
      return
    }
    if (last !== undefined) copy.add(last)
    this.#charge()
    this.#bound(copy)
    this.#pumpAsker()
    if (!this.#shared || head === undefined) return
    const { keptFor, clock } = this.#rules
    const whole = { head, body: copy, at: clock.monotonic() }
    this.#whole = whole
    if (this.open && keptFor > 0 && mayKeep(head)) this.#timer = clock.after(keptFor, () => this.close())
    else this.close()
    for (const reader of this.#waiting) this.#deliver(reader, whole, false)
  }

  /** Called after the head has come. The clients that still wait are not cut: `dismiss` returns them. */
  cut(): void {
    this.#timer?.cancel()
    this.#shared = false
    this.open = false
    this.#rules.held.delete(this)
    for (const { exchange } of this.#reading) exchange.cut()
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener
  }

  onEnd(listener: () => void): void {
    if (this.ended) listener()
    else this.#onEnd.push(listener)
  }

  #finish(reader: Reader): void {
    if (this.#remove(reader)) reader.listener.ended(reader.exchange, undefined)
  }

  /** False if it was removed before. */
  #remove(reader: Reader): boolean {
    const removed = this.#waiting.delete(reader) || this.#reading.delete(reader)
    if (reader === this.asker) this.#charge()
    if (removed && this.ended) {
      for (const listener of this.#onEnd.splice(0)) listener()
      // Every client left before the end, or no further one may join.
      if (!this.#complete || !this.open) this.close()
    }
    return removed
  }

  /** The asker pays for the copy until its response ends (C26). From then on only the number of shared responses bounds the copies. */
  #charge(): void {
    const { asker } = this
    const isHere = this.#waiting.has(asker) || this.#reading.has(asker)
    const bytes = isHere ? (this.#copy?.size ?? 0) : 0
    asker.exchange.memory?.hold(bytes - this.#charged)
    this.#charged = bytes
  }

  #bound(copy: Blocks): void {
    if (copy.size > LONGEST_SHARED) this.#keepForAsker()
  }

  /** The response goes on for the asker alone. The clients that wait ask for themselves. */
  #keepForAsker(): void {
    if (!this.#shared) return
    this.#timer?.cancel()
    this.#shared = false
    this.open = false
    this.#rules.held.delete(this)
    this.#dropCopy()
    for (const reader of [...this.#waiting]) if (reader !== this.asker) this.#leave(reader)
  }

  #leave(reader: Reader): void {
    this.#remove(reader)
    this.#rules.onAlone(reader)
  }

  /** Sends the head. Returns false if the reader already has a response, because its grant was revoked while it waited. */
  #begin(reader: Reader, head: ResponseHead): boolean {
    const { exchange } = reader
    if (exchange.answered) {
      this.#finish(reader)
      return false
    }
    exchange.begin(head)
    this.#waiting.delete(reader)
    this.#reading.add(reader)
    return true
  }

  #startAsker(): void {
    const { exchange } = this.asker
    const delivery = this.#copy === undefined ? undefined : new Delivery(exchange, this.#copy)
    this.#ofAsker = delivery
    exchange.onDrain(() => {
      if (delivery !== undefined) delivery.full = false
      this.#pumpAsker()
      if (delivery?.full !== true) this.#onDrain()
    })
  }

  #pumpAsker(): void {
    this.#ofAsker?.pump(this.#complete)
    this.#dropCopy()
  }

  /** Drops a copy that no client needs. The rest of the response then goes straight to the asker. */
  #dropCopy(): void {
    if (!this.#shared && !this.#complete && this.#ofAsker?.behind !== true) {
      this.#copy = undefined
      this.#ofAsker = undefined
      this.#charge()
    }
  }

  #deliver(reader: Reader, whole: Whole, isKept: boolean): void {
    const { exchange } = reader
    try {
      if (!this.#begin(reader, this.#headFor(exchange, whole, isKept))) return
    } catch {
      // For example a status that HTTP/2 cannot carry.
      this.#leave(reader)
      return
    }
    // For the record: when the device was asked, and what it answered.
    const { sentAt, deviceStatus, tolerant } = this.asker.exchange
    Object.assign(exchange, { sentAt, deviceStatus, tolerant, headAt: this.#rules.clock.monotonic() })
    this.#rules.onShared(isKept)
    const delivery = new Delivery(exchange, whole.body)
    exchange.onDrain(() => {
      delivery.full = false
      delivery.pump(true)
    })
    delivery.pump(true)
  }

  /** The head with the reader's own request id where the device echoes the asker's. A kept response also gets its age (RFC 9111 §5.1). */
  #headFor({ requestId }: Forward, { head, at }: Whole, isKept: boolean): ResponseHead {
    const { exchange: asker } = this.asker
    if (!isKept && !head.fields.includes(asker.requestId)) return head
    let fields = head.fields.map((text) => (text === asker.requestId ? requestId : text))
    if (isKept) {
      const before = lengthIn(fieldValues(fields, 'age')[0] ?? '') ?? 0
      const age = before + Math.floor((this.#rules.clock.monotonic() - at) / 1000)
      fields = [...keepFields(fields, (name) => name !== 'age'), 'Age', String(age)]
    }
    return { ...head, fields, reusable: false }
  }
}
