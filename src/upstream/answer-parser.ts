import { LARGEST_ANSWER_HEAD } from './answer-handler.ts'
import { type AnswerHead, endsWithHead, isStatusLine, plainLength } from './answer-head.ts'
import { BodyPieces } from './body-pieces.ts'
import { DeviceFault } from './failure.ts'
import { createLlhttp, type Llhttp, type ParserEvents } from './llhttp.ts'
import { MalformedAnswer } from './malformed-answer.ts'
import { NameMemory } from './name-memory.ts'

/** Beside its two positions in the head each field has those of its value. */
const MARKS = 4

/**
 * Reads answers, strictly: what `parse` found last stands in `head`, `body` and `ended`. The bytes are read
 * where they are; only of a head that comes in pieces is anything kept. It must be closed.
 */
export class AnswerParser implements ParserEvents {
  readonly #llhttp: Llhttp
  #method = ''
  /** What came of the head before the bytes that are being read, and what to add to a position in those. */
  #text = ''
  #base = 0
  #inHead = true
  #status = 0
  #keepsAlive = false
  #reasonStart = 0
  #reasonEnd = 0
  #marks: number[] = []
  readonly #names = new NameMemory()
  #count = 0
  #headEnd = 0
  #named = false
  #trailerSize = 0
  /** So much of the body (bytes) is still to come without any framing within it. */
  #plain = 0
  /** What the last `parse` found of the body. */
  readonly body: BodyPieces = new BodyPieces()
  /** Set by the `parse` that came to the end of a head. */
  head: AnswerHead | undefined
  /** The answer is whole. */
  ended = false
  /** Nothing can be read any more: a `MalformedAnswer` where a more tolerant parser might do. */
  fault: DeviceFault | undefined

  constructor() {
    this.#llhttp = createLlhttp(this)
  }

  /** The next bytes begin an answer to a request with this method. */
  expect(method: string): void {
    this.#method = method
    this.#expectHead()
  }

  /**
   * Reads `bytes` from `start` to `end`, but not behind the end of an answer, and gives where it stopped. What was good
   * before a `fault` counts.
   */
  parse(bytes: Buffer, start: number, end: number): number {
    this.head = undefined
    // That was an interim answer, maybe of HTTP/1.0: what it says of the connection is not the last word.
    if (this.ended) this.#expectHead()
    this.body.clear()
    this.#base = this.#text.length - start
    const awaitsHead = this.#inHead
    const stage = awaitsHead ? 'head' : end - start <= this.#plain ? 'plain' : 'framed'
    const progress = this.#llhttp.execute(bytes, start, end, stage)
    this.#plain -= this.body.size
    if (progress === 'malformed') this.fault = new MalformedAnswer()
    if (awaitsHead) this.#takeHead(bytes, start, end)
    if (this.#trailerSize > LARGEST_ANSWER_HEAD) this.#tooLarge()
    return progress === 'ended' ? this.#llhttp.stoppedAt : end
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
    this.#headEnd = this.#reasonEnd
  }

  onName(start: number, end: number): void {
    if (!this.#inHead) {
      this.#trailerSize += end - start
      return
    }
    this.#headEnd = end + this.#base
    if (!this.#named) {
      this.#marks[this.#count] = start + this.#base
      this.#marks[this.#count + 2] = this.#headEnd
      this.#marks[this.#count + 3] = this.#headEnd
      this.#count += MARKS
      this.#named = true
    }
    this.#marks[this.#count - 3] = this.#headEnd
  }

  onValue(start: number, end: number): void {
    if (!this.#inHead) {
      this.#trailerSize += end - start
      return
    }
    this.#headEnd = end + this.#base
    if (this.#named) this.#marks[this.#count - 2] = start + this.#base
    this.#named = false
    this.#marks[this.#count - 1] = this.#headEnd
  }

  onHead(status: number, keepsAlive: boolean): boolean {
    this.#inHead = false
    this.#status = status
    this.#keepsAlive = keepsAlive
    return endsWithHead(this.#method, status)
  }

  onBody(start: number, end: number): void {
    this.body.add(start, end)
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
    this.#plain = 0
    this.head = undefined
    this.ended = false
    this.fault = undefined
  }

  #takeHead(bytes: Buffer, start: number, end: number): void {
    // With the end of the status line, which may be all that there is.
    const past = this.#inHead || this.#reasonEnd === 0 ? end : this.#headEnd - this.#base + 2
    const text = this.#text + bytes.toString('latin1', start, Math.min(past, end))
    if ((this.#inHead ? text.length : this.#headEnd) > LARGEST_ANSWER_HEAD) this.#tooLarge()
    else if (this.#inHead) this.#text = text
    else if (!this.#isMeant(text)) this.fault = new MalformedAnswer()
    else this.#frame(this.#headIn(text))
  }

  #frame(head: AnswerHead): void {
    const plain = plainLength(head, this.#method)
    if (plain === undefined) {
      this.fault = new MalformedAnswer()
      return
    }
    this.head = head
    if (!this.ended) this.#plain = plain - this.body.size
  }

  #isMeant(text: string): boolean {
    return this.#status >= 100 && isStatusLine(text, this.#reasonStart, this.#reasonEnd)
  }

  #tooLarge(): void {
    this.fault = new DeviceFault('http_response_header_section_size')
  }

  #headIn(text: string): AnswerHead {
    const fields: string[] = []
    const marks = this.#marks
    for (let i = 0; i < this.#count; i += MARKS) {
      const name = this.#names.at(i / MARKS, text, marks[i] ?? 0, marks[i + 1] ?? 0)
      fields.push(name, valueIn(text, marks[i + 2] ?? 0, marks[i + 3] ?? 0))
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

/** llhttp leaves the blanks behind a value, and HTTP/2 clients refuse an answer that has them (RFC 9113 §8.2.1). */
function valueIn(text: string, start: number, end: number): string {
  let last = end
  while (last > start && isSpace(text.charCodeAt(last - 1))) last -= 1
  return text.slice(start, last)
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09
}
