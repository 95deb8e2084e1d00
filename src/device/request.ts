import type { Socket } from 'node:net'
import type { Fields } from '../http/fields.ts'
import type { Deviation } from '../http1/deviation.ts'
import type { OutgoingRequest } from '../http1/request-writer.ts'
import type { Http1ResponseHead } from '../http1/response-head.ts'
import { afterTurn, type Clock } from '../system/clock.ts'
import { writeSpent } from '../system/write-soon.ts'
import { DeviceFault } from './failure.ts'

/** The request line without its version. */
export interface RequestLine {
  readonly method: string
  /** In origin form, byte for byte as it is sent. */
  readonly target: string
}

export interface DeviceRequest extends OutgoingRequest {
  /** Defined if the framing announces a body. */
  readonly body: AsyncIterable<Buffer> | undefined
}

/** The head of the device's final response. If it is `remembered`, results derived from its fields can be cached. */
export type DeviceHead = Pick<Http1ResponseHead, 'status' | 'reason' | 'fields' | 'remembered'> &
  Partial<Pick<Http1ResponseHead, 'framing' | 'isStream'>>

/**
 * How much of a response had come when it failed. `begun`: at least a byte. `silent`: nothing. `stale`: nothing, and the connection was
 * open before the request, so the device may have closed it while it was idle. `unread`: the 408 of an idle connection (RFC 9110 §15.5.9).
 */
export type Loss = 'begun' | 'silent' | 'stale' | 'unread'

/** Receives one response of the device, in this order. One of `end`, `switched` and `failed` is called once, as the last call. */
export interface ResponseHandler {
  /** The client already has a response, such as a refusal because the sidecar stops. The request is not sent. */
  readonly answered?: boolean
  /**
   * Sends the head in place of the connection, for a request without a body. It is called again, with another socket, if the first one was
   * dropped.
   * @param host the `Host` of a request without one
   */
  transmit?(socket: Socket, host: string): void
  /** The connection is open, and the head of the request is sent. `reused`: it was open before the request. */
  sent?(reused: boolean): void
  /** The whole body of the request is sent. */
  uploaded?(): void
  inform(status: number, fields: Fields): void
  /** @param now ms, monotonic */
  head(head: DeviceHead, now: number): void
  data(chunk: Buffer): void
  /** Called for the first response that the strict rules refuse. */
  malformed?(deviation: Deviation): void
  /**
   * Whether the request may be sent again, whatever its method, after the 408 of an idle connection: the device has read nothing of it.
   * Then `failed` follows with `unread`. Otherwise that 408 is the response.
   */
  readonly repeatsUnread?: boolean
  /** Whether pieces of half a MiB may come; default: no. */
  readonly takesLarge?: boolean
  /** More requests are at the device than it is known to carry with ease. */
  crowded?(): void
  /** Other requests wait for a place at the device. */
  othersWait?(): void
  /** The response is complete. `last` is the piece of the body that came with its end. */
  end(last?: Buffer): void
  /** The device switched to the protocol of an upgrade. `rest` are the first bytes of the tunnel; the other ones are in `device`. */
  switched?(head: DeviceHead, device: Socket, rest: Buffer): void
  failed(error: unknown, loss: Loss): void
}

/** A piece up to this size (bytes) is sent as text together with the head or the chunk line: one write costs less than two. */
const LARGEST_JOINED = 8 * 1024

/** The most bytes of a body that wait for the end of the turn of the event loop: see `corkForTurn`. */
const MOST_AT_ONCE = 128 * 1024

/** The head of a body longer than `LONG` (bytes), or of unknown length, is sent `HEAD_START` (ms) before the body. */
const LONG = 1024 ** 2
const HEAD_START = 20
/** The head start is waited in this many parts. A stall of this process, in which the device gets no time, uses up one part only. */
const PARTS = 4

/**
 * Sends a request with its body, as fast as the device reads it. Resolves when everything is sent or the connection has closed. Rejects if
 * the body fails, or if its length differs from `framing`; the connection then cannot carry another request.
 *
 * A long upload gets a head start. A device that refuses it by its head alone can then close before bytes arrive that it does not read.
 * Such bytes would make its kernel reset the connection and drop the response, which webfsd still holds corked.
 *
 * @param onSent called after each piece with its size (bytes), and with 0 after the end; `whole` when the body is complete
 */
export async function sendUpload(
  clock: Pick<Clock, 'after'>,
  socket: Socket,
  head: string,
  body: AsyncIterable<Buffer>,
  framing: null | number | 'chunked',
  onSent: (size: number, whole: boolean) => void,
): Promise<void> {
  const chunked = framing === 'chunked'
  const early = chunked || (framing ?? 0) > LONG
  if (early) {
    socket.write(head, 'latin1')
    for (let part = 0; part < PARTS; part += 1) {
      await first(socket, ['close'], { clock, time: HEAD_START / PARTS })
      if (socket.destroyed) return
    }
  }
  let left = typeof framing === 'number' ? framing : Number.POSITIVE_INFINITY
  let before = early ? '' : head
  for await (const chunk of body) {
    if (socket.destroyed) return
    left -= chunk.length
    if (left < 0) throw new DeviceFault('http_protocol_error')
    if (chunk.length === 0) continue
    const size = chunked ? `${chunk.length.toString(16)}\r\n` : ''
    if (left > 0 && chunk.length < MOST_AT_ONCE) corkForTurn(socket)
    write(socket, before + size, chunk)
    if (socket.writableLength >= MOST_AT_ONCE) socket.uncork()
    before = chunked ? '\r\n' : ''
    onSent(chunk.length, left === 0)
    if (socket.writableNeedDrain && socket.writableCorked === 0) await first(socket, ['drain', 'close'])
  }
  if (socket.destroyed) return
  if (left > 0 && !chunked) throw new DeviceFault('http_protocol_error')
  const end = chunked ? `${before}0\r\n\r\n` : before
  if (end !== '') socket.write(end, 'latin1')
  onSent(0, true)
}

/**
 * Holds what is written to an idle socket back until the turn has read all input: TLS delivers a body in pieces of 16 KiB, and one write of
 * several pieces costs less than a write of each. Behind a write in progress the socket itself collects what follows.
 */
function corkForTurn(socket: Socket): void {
  if (socket.writableLength > 0) return
  socket.cork()
  afterTurn(() => socket.uncork())
}

function write(socket: Socket, before: string, chunk: Buffer): void {
  if (before === '') writeSpent(socket, chunk)
  else if (chunk.length <= LARGEST_JOINED) socket.write(before + chunk.toString('latin1'), 'latin1')
  else {
    socket.cork()
    socket.write(before, 'latin1')
    writeSpent(socket, chunk)
    socket.uncork()
  }
}

/** Resolves at the first of these events, or after `most.time` (ms). */
function first(
  socket: Socket,
  events: readonly string[],
  most?: { readonly clock: Pick<Clock, 'after'>; readonly time: number },
): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      timer?.cancel()
      for (const event of events) socket.off(event, settle)
      resolve()
    }
    const timer = most?.clock.after(most.time, settle)
    for (const event of events) socket.on(event, settle)
  })
}
