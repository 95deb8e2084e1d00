import { expect } from 'vitest'
import { fieldValues, listMembers } from '../../src/http/fields.ts'
import { type Head, Response } from './message.ts'

/** Receives what a reader finds. */
interface Listener {
  /** The method of the request that this response belongs to; `undefined` when there was no request. */
  readonly method: string | undefined
  inform(head: Head): void
  begin(head: Head): void
  data(chunk: Buffer): void
  finish(trailers: readonly string[]): void
}

interface Http1Reader {
  /** Throws when the bytes are not a well-formed response. */
  feed(bytes: Buffer): void
  /** Reports the end of the connection. False when that cut a response off. */
  close(): boolean
}

type Framing = { kind: 'none' } | { kind: 'length'; left: number } | { kind: 'chunked' } | { kind: 'close' }

const statusLine = /^HTTP\/(1\.[01]) ([1-9]\d\d) ([\t\x20-\x7e\x80-\xff]*)$/
const fieldLine =
  /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[\x21-\x7e\x80-\xff]|[ \t](?=[ \t]*[\x21-\x7e\x80-\xff]))*)[ \t]*$/

function parseFields(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const match = fieldLine.exec(line)
    if (match === null) throw new Error(`not a header field: ${JSON.stringify(line)}`)
    return [match[1] ?? '', match[2] ?? '']
  })
}

function parseHead(text: string): Head {
  const [first = '', ...lines] = text.split('\r\n')
  const match = statusLine.exec(first)
  if (match === null) throw new Error(`not a status line: ${JSON.stringify(first)}`)
  return {
    version: match[1] === '1.0' ? '1.0' : '1.1',
    status: Number(match[2]),
    reason: match[3] ?? '',
    fields: parseFields(lines),
  }
}

/** RFC 9112 §6.3 without leniency: a response that two parsers could read differently is a failure. */
function framingOf(head: Head, method: string): Framing {
  const codings = listMembers(fieldValues(head.fields, 'transfer-encoding'))
  const lengths = fieldValues(head.fields, 'content-length')
  if (codings.length > 0 && lengths.length > 0) throw new Error('both Transfer-Encoding and Content-Length')
  if (lengths.length > 1 || lengths.some((length) => !/^\d+$/.test(length))) {
    throw new Error(`Content-Length: ${lengths.join(', ')}`)
  }
  if (head.status === 101) return { kind: 'close' }
  if (head.status === 204 && (codings.length > 0 || lengths.length > 0)) throw new Error('a framed 204')
  if (method === 'HEAD' || head.status === 204 || head.status === 304) return { kind: 'none' }
  if (codings.length > 0) {
    if (codings.join() !== 'chunked') throw new Error(`Transfer-Encoding: ${codings.join(', ')}`)
    return { kind: 'chunked' }
  }
  return lengths[0] === undefined ? { kind: 'close' } : { kind: 'length', left: Number(lengths[0]) }
}

/** Parses the responses of one connection strictly. `next` returns the listener of the response that begins. */
export function createHttp1Reader(next: () => Listener | undefined): Http1Reader {
  let pending: Buffer = Buffer.alloc(0)
  let listener: Listener | undefined
  let framing: Framing | undefined
  /** Within a chunked body: the bytes that are left of the chunk, or which line comes next. */
  let chunk: number | 'size' | 'after-data' | 'trailers' = 'size'
  let trailers: string[] = []

  function takeLine(): string | undefined {
    const at = pending.indexOf('\r\n')
    if (at < 0) return undefined
    const line = pending.toString('latin1', 0, at)
    pending = pending.subarray(at + 2)
    return line
  }

  function take(most: number): Buffer {
    const taken = pending.subarray(0, most)
    pending = pending.subarray(taken.length)
    return taken
  }

  function finish(): void {
    const finished = listener
    listener = undefined
    framing = undefined
    finished?.finish(trailers)
    trailers = []
  }

  function readHead(): boolean {
    const at = pending.indexOf('\r\n\r\n')
    if (at < 0) return false
    listener ??= next()
    if (listener?.method === undefined)
      throw new Error(`a response without a request: ${JSON.stringify(pending.toString('latin1'))}`)
    const head = parseHead(pending.toString('latin1', 0, at))
    pending = pending.subarray(at + 4)
    if (head.status < 200 && head.status !== 101) {
      listener.inform(head)
      return true
    }
    framing = framingOf(head, listener.method)
    listener.begin(head)
    if (framing.kind === 'none' || (framing.kind === 'length' && framing.left === 0)) finish()
    return true
  }

  function readChunked(): boolean {
    if (typeof chunk === 'number') {
      const piece = take(chunk)
      chunk -= piece.length
      listener?.data(piece)
      if (chunk === 0) chunk = 'after-data'
      return pending.length > 0
    }
    const line = takeLine()
    if (line === undefined) return false
    if (chunk === 'after-data') {
      if (line !== '') throw new Error(`after a chunk: ${JSON.stringify(line)}`)
      chunk = 'size'
    } else if (chunk === 'size') {
      if (!/^[0-9A-Fa-f]{1,12}$/.test(line)) throw new Error(`chunk size ${JSON.stringify(line)}`)
      const size = Number.parseInt(line, 16)
      chunk = size === 0 ? 'trailers' : size
    } else if (line === '') {
      chunk = 'size'
      finish()
    } else trailers.push(...parseFields([line]))
    return true
  }

  function step(): boolean {
    if (framing === undefined) return readHead()
    if (framing.kind === 'chunked') return readChunked()
    if (pending.length === 0) return false
    const piece = take(framing.kind === 'length' ? framing.left : pending.length)
    listener?.data(piece)
    if (framing.kind === 'length') {
      framing.left -= piece.length
      if (framing.left === 0) finish()
    }
    return true
  }

  return {
    feed(bytes) {
      pending = pending.length === 0 ? bytes : Buffer.concat([pending, bytes])
      while (pending.length > 0 && step());
    },
    close() {
      if (framing?.kind === 'close') finish()
      return framing === undefined && pending.length === 0
    },
  }
}

/** These lines as the head of a message, with the empty line that ends it. */
export const headOf = (...lines: string[]): string => `${lines.join('\r\n')}\r\n\r\n`

/** The final responses in everything that a closed connection received. Fails unless each of them is whole. */
export function responsesIn(received: string): Response[] {
  const responses: Response[] = []
  let head: Head | undefined
  let chunks: Buffer[] = []
  const reader = createHttp1Reader(() => ({
    method: 'GET',
    inform: () => {},
    begin: (begun) => {
      head = begun
      chunks = []
    },
    data: (chunk) => chunks.push(chunk),
    finish: (trailers) => {
      if (head !== undefined) responses.push(new Response(head, Buffer.concat(chunks), trailers, []))
    },
  }))
  reader.feed(Buffer.from(received, 'latin1'))
  expect(reader.close(), 'whole responses and nothing else').toBe(true)
  return responses
}
