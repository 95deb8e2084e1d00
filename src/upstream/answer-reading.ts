import { MOST_INTERIM_ANSWERS } from './answer-handler.ts'
import type { AnswerHead } from './answer-head.ts'
import { AnswerParser } from './answer-parser.ts'
import { DeviceFault } from './failure.ts'

export interface ReadingEvents {
  /** An interim answer that the client may be told. */
  onInterim(head: AnswerHead): void
  onHead(head: AnswerHead): void
  onBody(chunk: Buffer): void
  /** `clean`: nothing stood behind it. */
  onWhole(last: Buffer | undefined, clean: boolean): void
  /** Nothing more of the answer can be read. */
  onFault(fault: DeviceFault): void
}

/** The bytes that come over a connection, as answers: one after each `expect`, until `close`. */
export class AnswerReading {
  readonly #parser = new AnswerParser()
  readonly #events: ReadingEvents
  #wanted = false
  #interim = 0
  /** A byte has come since the last `expect`. */
  heard = false
  /** The head of the answer, since it has come. */
  head: AnswerHead | undefined

  constructor(events: ReadingEvents) {
    this.#events = events
  }

  expect(method: string): void {
    this.#parser.expect(method)
    this.#wanted = true
    this.#interim = 0
    this.heard = false
    this.head = undefined
  }

  /** Gives whether a large body passes. If they are its `own`, bytes full of it are kept. */
  receive(bytes: Buffer, length: number, own: boolean): boolean {
    this.heard = true
    let at = 0
    do at = this.#read(bytes, at, length, own)
    while (at < length && this.#wanted)
    return this.#parser.body.large
  }

  /** The device sends no more; `inOrder` unless it reset the connection. A reset ends no answer that has no length. */
  finish(inOrder: boolean): void {
    if (this.#wanted && this.head !== undefined) {
      if (inOrder) this.#parser.finish()
      if (this.#parser.ended) this.#end(undefined, true)
      else this.#fail(new DeviceFault('http_response_incomplete'))
    }
  }

  close(): void {
    this.#wanted = false
    this.#parser.close()
  }

  /** Hands on what comes up to the end of a message. */
  #read(bytes: Buffer, start: number, end: number, own: boolean): number {
    const parser = this.#parser
    const at = parser.parse(bytes, start, end)
    const { head } = parser
    if (head !== undefined && head.status < 200) {
      this.#inform(head)
      return at
    }
    if (head !== undefined) {
      this.head = head
      this.#events.onHead(head)
      // Whoever was told has broken off.
      if (!this.#wanted) return end
    }
    if (this.head !== undefined) {
      const body = parser.body.take(bytes, own)
      if (parser.ended && parser.fault === undefined) this.#end(body, isBlank(bytes, at, end))
      // Only data ends a pause: framing without any could go on for ever.
      else if (body !== undefined) this.#events.onBody(body)
    }
    if (parser.fault !== undefined) this.#fail(parser.fault)
    return at
  }

  #inform(head: AnswerHead): void {
    this.#interim += 1
    // Nobody asked the device to speak another protocol.
    if (head.status === 101 || this.#interim > MOST_INTERIM_ANSWERS) {
      this.#fail(new DeviceFault('http_protocol_error'))
    }
    // `100 Continue` answers an expectation that is never passed on; a client must bear it (RFC 9110 §15.2).
    else if (head.status !== 100) this.#events.onInterim(head)
  }

  #fail(fault: DeviceFault): void {
    this.#wanted = false
    this.#events.onFault(fault)
  }

  #end(last: Buffer | undefined, clean: boolean): void {
    this.#wanted = false
    this.#events.onWhole(last, clean)
  }
}

const CR = 0x0d
const LF = 0x0a

/** Line ends between two messages mean nothing (RFC 9112 §2.2), and some firmware is generous with them. */
export function isBlank(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (bytes[at] !== CR && bytes[at] !== LF) return false
  return true
}
