import type { Socket } from 'node:net'
import { type BodyFraming, Http1Framing } from './http1-framing.ts'

export interface IntakeEvents {
  /** Whether the next message has to wait: the one before is still being served, or nothing more may be. */
  readonly busy: () => boolean
  /** Asked when a head has been parsed: how its body is framed. Undefined if no request has come of it. */
  readonly begun: () => BodyFraming | undefined
  /** The bytes are not HTTP, and nothing more of them is read. */
  readonly onFault: () => void
  /** Something failed here that must not end the process. */
  readonly onBug: (error: unknown) => void
}

/** The way of a connection's bytes to Node's parser. */
export interface Intake {
  /** The client has closed its sending side. */
  readonly ended: boolean
  /** And all that it sent has been parsed. */
  readonly exhausted: boolean
  /** Goes on with what had to wait. */
  proceed(): void
  /** Takes nothing more from the connection. Returns what has been read of it and not parsed. */
  release(): Buffer
}

/** So much (bytes) may wait while a request is being served; beyond it the client has to. */
const MOST_WAITING = 64 * 1024

const NOTHING = Buffer.alloc(0)
/** Trailers are dropped (RFC 9110 §6.5.1): to Node's parser `Connection` and lengths mean something even there. */
const NO_TRAILERS = Buffer.from('\r\n')

/**
 * Stands between a connection and the parser that Node's HTTP server has attached to it: hands over one message after
 * the other, the next one only when the one before has been served. So what a client sends in one go reaches the
 * device in that order (RFC 9112 §9.3.2), costs no more than its bytes until then, and never becomes a request on a
 * connection that closes. That parser is given nothing that it is lenient about.
 */
export function createIntake(socket: Socket, { busy, begun, onFault, onBug }: IntakeEvents): Intake {
  const parse = takeListener(socket, 'data')
  const finish = takeListener(socket, 'end')
  const framing = new Http1Framing()
  let pending: Buffer = NOTHING
  let full = false
  let ended = false
  let released = false

  function advance(): void {
    while (pending.length > 0 && !released && !(framing.idle && busy())) {
      const bytes = pending
      const stop = framing.read(bytes)
      if (stop === 'fault') {
        release()
        onFault()
        return
      }
      const { position, useful } = framing
      pending = position === bytes.length ? NOTHING : bytes.subarray(position)
      if (useful > 0) parse(useful === bytes.length ? bytes : bytes.subarray(0, useful))
      if (stop === 'message' && useful < position) parse(NO_TRAILERS)
      if (stop === 'head') learnFraming()
    }
    if (ended && pending.length === 0 && !released) finish()
  }

  function learnFraming(): void {
    const body = begun()
    if (body === undefined) release()
    else framing.body(body)
  }

  /** Holds a client that sends ahead of its answers, and lets it go again. */
  function regulate(): void {
    if (full === pending.length > MOST_WAITING) return
    full = !full
    if (full) socket.pause()
    else socket.resume()
  }

  function onData(chunk: Buffer): void {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
    proceed()
  }

  function onEnd(): void {
    ended = true
    proceed()
  }

  function proceed(): void {
    if (socket.destroyed) return
    try {
      advance()
      regulate()
    } catch (error) {
      onBug(error)
      socket.destroy()
    }
  }

  function release(): Buffer {
    const rest = pending
    pending = NOTHING
    released = true
    socket.off('data', onData)
    socket.off('end', onEnd)
    return rest
  }

  socket.on('data', onData)
  socket.on('end', onEnd)

  return {
    get ended() {
      return ended
    },
    get exhausted() {
      return ended && pending.length === 0
    },
    proceed,
    release,
  }
}

/** Takes off what Node's server has just put on a connection, to be called from here. */
function takeListener(socket: Socket, event: 'data' | 'end'): (chunk?: Buffer) => void {
  // EventEmitter types its listeners no closer than this; Node's own two take a chunk, and nothing.
  const listener = socket.listeners(event).at(-1) as ((chunk?: Buffer) => void) | undefined
  if (listener === undefined) throw new Error(`Node's HTTP server does not listen for ${event}`)
  socket.off(event, listener)
  return listener
}
