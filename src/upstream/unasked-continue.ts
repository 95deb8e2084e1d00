import type { Socket } from 'node:net'

/** What a connection has sent since the last request went out on it. */
export interface AnswerWatch {
  /** A request goes out: the next byte is the first of its answer. */
  asked(): void
  /** Whether any of the answer has come. */
  readonly heard: boolean
}

/** An interim answer; behind a 101 there is no HTTP any more. */
const INTERIM = /^HTTP\/1\.[01] 1(?!01)\d\d[ \r]/
const INTERIM_LENGTH = 13
const CONTINUE = '100'
const STATUS_AT = 9
const END = '\r\n\r\n'
/** More than so many for one request, or a larger one (bytes), are left for undici to refuse. */
const MOST = 16
const LARGEST = 16 * 1024

/**
 * Takes `100 Continue` out of what a device sends. Nobody asked for it, as `Expect` is never passed on, but a client
 * must bear it (RFC 9110 §15.2), and firmware of a certain age sends it in front of every answer to a POST. undici
 * breaks the connection instead, when the device has acted on the request already; so undici never gets to read it.
 */
export function skipUnaskedContinue(socket: Socket): AnswerWatch {
  const read = socket.read.bind(socket)
  let waiting = false
  let heard = false
  let skipped = 0
  let held: Buffer = NOTHING

  /** What undici is to read of these bytes, with which an answer begins or goes on. */
  function skip(bytes: Buffer): Buffer {
    const kept: Buffer[] = []
    let rest = held.length === 0 ? bytes : Buffer.concat([held, bytes])
    held = NOTHING
    while (skipped < MOST && mayBeInterim(rest)) {
      const end = rest.indexOf(END)
      if (end < 0 && rest.length <= LARGEST) {
        held = rest
        return Buffer.concat(kept)
      }
      if (end < 0) break
      const head = rest.subarray(0, end + END.length)
      if (head.toString('latin1', STATUS_AT, STATUS_AT + CONTINUE.length) === CONTINUE) skipped += 1
      else kept.push(head)
      rest = rest.subarray(head.length)
    }
    waiting = false
    return kept.length === 0 ? rest : Buffer.concat([...kept, rest])
  }

  function readAnswer(size?: number): unknown {
    const chunk: unknown = read(size)
    if (!waiting || !Buffer.isBuffer(chunk)) return chunk
    heard = true
    const left = skip(chunk)
    return left.length === 0 ? null : left
  }

  // The one door through which undici takes bytes from a connection.
  socket.read = readAnswer
  return {
    asked() {
      waiting = true
      heard = false
      skipped = 0
      held = NOTHING
    },
    get heard() {
      return heard
    },
  }
}

const NOTHING = Buffer.alloc(0)

/** Also where too little has come to tell. */
function mayBeInterim(bytes: Buffer): boolean {
  // Most answers are told apart by this alone.
  if (bytes.length > STATUS_AT && bytes[STATUS_AT] !== 0x31) return false
  const start = bytes.toString('latin1', 0, INTERIM_LENGTH)
  if (start.length === INTERIM_LENGTH) return INTERIM.test(start)
  return INTERIM.test(start + 'HTTP/1.1 100 '.slice(start.length))
}
