import { withoutBlanks } from '../http/fields.ts'
import { DeviceFault } from './failure.ts'
import { createLlhttp, type Llhttp, type ParserEvents } from './llhttp.ts'
import { MalformedAnswer } from './malformed-answer.ts'

/** The head of an answer as it stands on the wire, every byte a character; names and values alternate. */
export interface AnswerHead {
  readonly status: number
  readonly reason: string
  readonly fields: string[]
  /** The device will read another request from this connection. */
  readonly keepsAlive: boolean
}

/** Heads, and the trailers of a body, are taken from the device up to this size (bytes). */
export const LARGEST_ANSWER_HEAD: number = 64 * 1024

/** Beside its two positions in the head each field has those of its value. */
const MARKS = 4

/**
 * Reads answers, strictly: what `parse` found last stands in `head`, `ended` and what `takeBody` gives. The bytes are read
 * where they are; only of a head that comes in pieces is anything kept. It must be closed.
 */
export class AnswerParser implements ParserEvents {
  readonly #llhttp: Llhttp
  #bodyless = false
  /** What came of the head before the bytes that are being read, and what to add to a position in those. */
  #text = ''
  #base = 0
  #inHead = true
  #status = 0
  #keepsAlive = false
  #reasonStart = 0
  #reasonEnd = 0
  #marks: number[] = []
  #count = 0
  #named = false
  #trailerSize = 0
  /** Where pieces of the body begin and end. */
  #pieces: number[] = []
  #pieceCount = 0
  #bodySize = 0
  /** Set by the `parse` that came to the end of a head. */
  head: AnswerHead | undefined
  /** The answer is whole. */
  ended = false
  /** Nothing can be read any more: a `MalformedAnswer` where a more tolerant parser might do. */
  fault: DeviceFault | undefined

  constructor() {
    this.#llhttp = createLlhttp(this)
  }

  /** The next bytes begin an answer; `bodyless` when it is to a HEAD request. */
  expect(bodyless: boolean): void {
    this.#bodyless = bodyless
    this.#expectHead()
  }

  /**
   * Reads `bytes` from `start` to `end`, but not behind the end of an answer, and gives where it stopped. What was good
   * before a `fault` counts.
   */
  parse(bytes: Buffer, start: number, end: number): number {
    this.head = undefined
    if (this.ended) this.#expectHead()
    this.#pieceCount = 0
    this.#bodySize = 0
    this.#base = this.#text.length - start
    const awaitsHead = this.#inHead
    const progress = this.#llhttp.execute(bytes, start, end)
    if (progress === 'malformed') this.fault = new MalformedAnswer()
    if (awaitsHead) this.#takeHead(bytes, start, end)
    if (this.#trailerSize > LARGEST_ANSWER_HEAD) this.#tooLarge()
    return progress === 'ended' ? this.#llhttp.stoppedAt : end
  }

  /** What the last `parse` found of the body, copied out of its `bytes`. */
  takeBody(bytes: Buffer): Buffer | undefined {
    if (this.#bodySize === 0) return undefined
    const body = Buffer.allocUnsafe(this.#bodySize)
    let size = 0
    for (let i = 0; i < this.#pieceCount; i += 2) {
      size += bytes.copy(body, size, this.#pieces[i], this.#pieces[i + 1])
    }
    return body
  }

  /** The device has closed its side; that may be the end of the answer, and sets `ended` then. */
  finish(): void {
    if (!this.#inHead) this.#llhttp.finish()
  }

  close(): void {
    this.#llhttp.close()
  }

  onReason(start: number, end: number): void {
    if (this.#reasonStart === this.#reasonEnd) this.#reasonStart = start + this.#base
    this.#reasonEnd = end + this.#base
  }

  onName(start: number, end: number): void {
    if (!this.#inHead) this.#trailerSize += end - start
    else if (this.#named) this.#marks[this.#count - MARKS + 1] = end + this.#base
    else {
      this.#marks[this.#count] = start + this.#base
      this.#marks[this.#count + 1] = end + this.#base
      this.#marks[this.#count + 2] = 0
      this.#marks[this.#count + 3] = 0
      this.#count += MARKS
      this.#named = true
    }
  }

  onValue(start: number, end: number): void {
    if (!this.#inHead) this.#trailerSize += end - start
    else {
      if (this.#named) this.#marks[this.#count - 2] = start + this.#base
      this.#named = false
      this.#marks[this.#count - 1] = end + this.#base
    }
  }

  onHead(status: number, keepsAlive: boolean): boolean {
    this.#inHead = false
    this.#status = status
    this.#keepsAlive = keepsAlive
    return this.#bodyless || status < 200 || status === 204 || status === 304
  }

  onBody(start: number, end: number): void {
    this.#pieces[this.#pieceCount] = start
    this.#pieces[this.#pieceCount + 1] = end
    this.#pieceCount += 2
    this.#bodySize += end - start
  }

  onEnd(): void {
    this.ended = true
  }

  #expectHead(): void {
    this.#llhttp.reset()
    this.#text = ''
    this.#inHead = true
    this.#reasonStart = 0
    this.#reasonEnd = 0
    this.#count = 0
    this.#named = false
    this.#trailerSize = 0
    this.head = undefined
    this.ended = false
    this.fault = undefined
  }

  get #lastMark(): number {
    const [name = 0, , value = 0] = this.#marks.slice(Math.max(this.#count - MARKS + 1, 0), this.#count)
    return Math.max(this.#reasonEnd, name, value)
  }

  #takeHead(bytes: Buffer, start: number, end: number): void {
    const text =
      this.#text + bytes.toString('latin1', start, this.#inHead ? end : this.#lastMark - this.#base)
    if (text.length > LARGEST_ANSWER_HEAD) this.#tooLarge()
    else if (this.#inHead) this.#text = text
    else this.head = this.#headIn(text)
  }

  #tooLarge(): void {
    this.fault = new DeviceFault('http_response_header_section_size')
  }

  #headIn(text: string): AnswerHead {
    const fields: string[] = []
    for (let i = 0; i < this.#count; i += MARKS) {
      fields.push(
        text.slice(this.#marks[i], this.#marks[i + 1]),
        withoutBlanks(text.slice(this.#marks[i + 2], this.#marks[i + 3])),
      )
    }
    this.#text = ''
    return {
      status: this.#status,
      reason: text.slice(this.#reasonStart, this.#reasonEnd),
      fields,
      keepsAlive: this.#keepsAlive,
    }
  }
}
