import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { fieldValues } from '../http/fields.ts'
import { LARGEST_ANSWER_HEAD } from './answer-handler.ts'
import { endsWithHead } from './answer-head.ts'
import { createChunkMender } from './chunk-mender.ts'
import { DeviceFault } from './failure.ts'
import { type LenientHead, readLeniently, writeStrictly } from './lenient-head.ts'
import { createSocketOpener } from './open-socket.ts'
import type { UpstreamTarget } from './target.ts'

export interface ConnectionEvents {
  readonly onConnected: () => void
  /** The device has sent something. */
  readonly onBytes: () => void
  /** An interim response (RFC 9110 §15.2), which goes no further than here. */
  readonly onInterim: (head: LenientHead) => void
}

const HTTP = Buffer.from('http/')
const NOTHING = Buffer.alloc(0)

/**
 * A connection to the device for one request, on which the framing of the answer is mended before Node's parser sees
 * it: even `insecureHTTPParser` refuses a repeated length, a lower-case status line, or a space before a colon. What
 * the body says is handed on as it comes.
 */
export class MendedConnection extends Duplex {
  readonly #socket: Socket
  readonly #method: string
  readonly #events: ConnectionEvents
  /** What has come of a head; undefined once the final head is through. */
  #pending: Buffer | undefined = NOTHING
  /** Gives what Node's parser is shown for bytes behind that head. */
  #mendBody = (bytes: Buffer): Buffer => bytes
  #ended = false

  /** @param method of the request, which says whether a body may follow the head of the answer */
  constructor(target: UpstreamTarget, method: string, events: ConnectionEvents) {
    super()
    this.#method = method
    this.#events = events
    this.#socket = createSocketOpener(target).open(events.onConnected)
    this.#socket.on('data', (bytes: Buffer) => this.#receive(bytes))
    this.#socket.on('end', () => {
      this.#ended = true
      // A reset is not the end of an answer.
      if (this.#socket.destroyed) this.destroy(new DeviceFault('connection_terminated'))
      else this.push(null)
    })
    this.#socket.on('error', (error) => this.destroy(error))
    // Behind its end there may be bytes of the answer that nobody has read yet.
    this.#socket.on('close', () => this.#ended || this.destroy())
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    // A device that has closed behind its answer wants no more of the request.
    if (this.#ended) done()
    else this.#socket.write(chunk, done)
  }

  /** In one piece, where Node has the head and a short body together. */
  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), 'buffer' as BufferEncoding, done)
  }

  override _final(done: () => void): void {
    this.#socket.end(() => done())
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }

  #receive(bytes: Buffer): void {
    this.#events.onBytes()
    try {
      const mended = this.#mend(bytes)
      if (mended.length > 0 && !this.push(mended)) this.#socket.pause()
    } catch (error) {
      this.destroy(error instanceof Error ? error : new DeviceFault('http_protocol_error'))
    }
  }

  #mend(bytes: Buffer): Buffer {
    if (this.#pending === undefined) return this.#mendBody(bytes)
    this.#pending = withoutLeadingNewlines(Buffer.concat([this.#pending, bytes]))
    let end = endOfHead(this.#pending)
    while (end !== undefined) {
      const head = readLeniently(this.#pending.toString('latin1', 0, end.head), this.#method)
      const rest = this.#pending.subarray(end.body)
      // Nobody asked the device to speak another protocol.
      if (head.status === 101) throw new DeviceFault('http_protocol_error')
      if (head.status >= 200) {
        this.#pending = undefined
        if (endsWithHead(this.#method, head.status)) this.#mendBody = () => NOTHING
        else if (fieldValues(head.fields, 'transfer-encoding').length > 0) {
          this.#mendBody = createChunkMender().mend
        }
        return Buffer.concat([writeStrictly(head), this.#mendBody(rest)])
      }
      this.#events.onInterim(head)
      if (this.destroyed) return NOTHING
      this.#pending = withoutLeadingNewlines(rest)
      end = endOfHead(this.#pending)
    }
    const started = this.#pending.subarray(0, HTTP.length).toString('latin1').toLowerCase()
    if (!HTTP.toString().startsWith(started)) throw new DeviceFault('http_protocol_error')
    if (this.#pending.length > LARGEST_ANSWER_HEAD) throw new DeviceFault('http_response_header_section_size')
    return NOTHING
  }
}

/** Firmware that ends a body with one newline too many sends it before the next answer (RFC 9112 §2.2). */
function withoutLeadingNewlines(bytes: Buffer): Buffer {
  let start = 0
  while (bytes[start] === 0x0d || bytes[start] === 0x0a) start += 1
  return bytes.subarray(start)
}

/** Where the head ends and the body begins: at the first empty line, however its ends are written. */
function endOfHead(bytes: Buffer): { readonly head: number; readonly body: number } | undefined {
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) {
    let next = at + 1
    while (bytes[next] === 0x0d) next += 1
    if (bytes[next] === 0x0a) return at > LARGEST_ANSWER_HEAD ? undefined : { head: at, body: next + 1 }
  }
  return undefined
}
