import type { Socket } from 'node:net'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Taken } from '../http1/body.ts'
import type { Deviation } from '../http1/deviation.ts'
import { onlyLineEnds } from '../http1/head-reader.ts'
import { type HttpVersion, mayPersist, mayRepeat, writeRequestHead } from '../http1/request-writer.ts'
import type { Http1ResponseHead } from '../http1/response-head.ts'
import {
  type KnownHeads,
  type ResponseEvents,
  type ResponseFault,
  ResponseReader,
  type ResponseRules,
} from '../http1/response-reader.ts'
import type { Timer } from '../system/clock.ts'
import { writeSoon } from '../system/write-soon.ts'
import { BY_RESPONSE_FAULT, DeviceFault } from './failure.ts'
import { Opener, type OpenerEvents, type OpenerSettings, TERMINATED } from './opener.ts'
import {
  type DeviceRequest,
  type Loss,
  type RequestLine,
  type ResponseHandler,
  sendUpload,
} from './request.ts'

/** What all connections to one device share. */
export interface ConnectionSettings extends OpenerSettings {
  /** The `Host` of a request that has none. */
  readonly host: string
  /** A connection may carry another request after its first. */
  readonly reuses: boolean
  readonly version: HttpVersion
  /**
   * The rules for the next response. With `tolerant` a connection carries one request, so stray bytes cannot become the response to
   * another.
   */
  readonly rules: ResponseRules
  readonly known: KnownHeads
  /** Called when the device sends bytes that belong to no request, on a connection that could have carried another one. */
  readonly onStray: () => void
  /** Called when the strict rules refuse a response. `auto` then becomes `tolerant`, and stays so. */
  readonly onMalformed: (deviation: Deviation, line: RequestLine) => void
}

/** What a connection tells its owner. */
export interface ConnectionEvents {
  /** The device sent FIN or reset the connection. `heard`: a byte of the last response had come. */
  onClosedByDevice(heard: boolean): void
  /** The device ended the idle connection with a 408. */
  onTimedOut(): void
  /** Called once, when the connection has closed, by either side. */
  onClosed(): void
}

/**
 * - `opening`: the socket is not open; a request may wait for it
 * - `idle`: the socket is open, and no request is in flight
 * - `fresh`: a request is in flight, and it waited for the connection to open
 * - `reused`: a request is in flight, and it found the connection open. The device may have closed it while it was idle
 * - `switched`: the socket is a tunnel, and a handler owns it
 */
type ConnectionState = 'opening' | 'idle' | 'fresh' | 'reused' | 'switched' | 'closed'

/** The beginning of a 408, up to its reason phrase. */
const STATUS_408 = /^HTTP\/1\.[01] 408(?: |\r|\n)/
const STATUS_408_LENGTH = 13

/** One connection to the device. It carries one request at a time, and stays open as long as both sides allow. */
export class DeviceConnection implements OpenerEvents, ResponseEvents {
  readonly #settings: ConnectionSettings
  readonly #owner: ConnectionEvents
  readonly #opener: Opener
  readonly #reading: ResponseReader
  state: ConnectionState = 'opening'
  /** Undefined until the socket is open. */
  #socket: Socket | undefined
  #handler: ResponseHandler | undefined
  #request: DeviceRequest | undefined
  #uploading: DeviceRequest['body']
  #uploaded = 0
  #paused = false
  /** The present request allows another one after it on this connection. Its response has to allow that, too. */
  #mayFollow = false
  /** How long (ms) the device keeps the connection open while it is idle, if its last response announced that. */
  keptFor: number | undefined = undefined
  /** How many requests the connection has carried, and the most that the device takes on it. */
  #carried = 0
  #most = Number.POSITIVE_INFINITY
  /** When bytes were last read (ms). One reading of the clock serves all that they bring. */
  heardAt = 0
  /** When the present wait ends (ms): for a response, for more of its body, or for the next request. */
  #due = 0
  /** When the timer fires (ms). */
  #firesAt = 0
  #timer: Timer | undefined

  /**
   * @param repeatable the request that opens it may be sent again if the device refuses or drops it
   * @param upgrade it may become a tunnel
   */
  constructor(settings: ConnectionSettings, owner: ConnectionEvents, repeatable: boolean, upgrade: boolean) {
    this.#settings = settings
    this.#owner = owner
    this.#reading = new ResponseReader(this, settings.known)
    this.#opener = new Opener(settings, this, repeatable, upgrade)
  }

  /**
   * The bytes of the upload that the device has taken. Undefined without an upload, and while the device has not taken all that the client
   * sent: the client is then not the slow side.
   */
  get uploaded(): number | undefined {
    const socket = this.#socket
    if (this.#uploading === undefined || socket === undefined) return undefined
    // Bytes in a corked socket wait for the end of the turn, not for the device.
    return socket.writableLength > 0 && socket.writableCorked === 0 ? undefined : this.#uploaded
  }

  /** Sends a request, now or when the connection opens. `handler` receives the response. */
  send(request: DeviceRequest, handler: ResponseHandler): void {
    this.#request = request
    this.#handler = handler
    this.#paused = false
    if (this.state === 'closed') {
      this.abort(TERMINATED)
      return
    }
    this.#reading.expect(request.method, this.#settings.rules, request.upgrade)
    if (this.state !== 'idle') return
    this.state = 'reused'
    this.#write(request)
  }

  /** The handler of the request in flight. */
  get handler(): ResponseHandler | undefined {
    return this.#handler
  }

  pause(): void {
    this.#paused = true
    this.#socket?.pause()
  }

  resume(): void {
    this.#paused = false
    this.wait(this.#settings.deadlines.idle)
    this.#socket?.resume()
  }

  /**
   * Ends the attempt. Calls `failed` with `error` before it returns. A connection that is still opening stays open: no byte of the
   * request was sent, so it can carry another request.
   */
  abort(error: unknown): void {
    const loss = this.#loss()
    if (this.state !== 'opening') this.close()
    this.#giveUp(error, loss)
  }

  /** Closes the connection and fails its request. */
  destroy(error: unknown): void {
    const loss = this.#loss()
    this.close()
    this.#opener.destroy()
    this.#giveUp(error, loss)
  }

  close(): void {
    if (this.state === 'closed') return
    const idle = this.state === 'idle' && this.#uploading === undefined
    this.state = 'closed'
    this.#reading.close()
    this.#timer?.cancel()
    this.#opener.close(idle)
  }

  /** The first complete response came. `alone`: the pool has no other connection. */
  accepted(alone: boolean): void {
    this.#opener.accepted(alone)
  }

  #loss(): Loss {
    if (this.#reading.heard) return 'begun'
    return this.state === 'reused' ? 'stale' : 'silent'
  }

  #giveUp(error: unknown, loss: Loss): void {
    const handler = this.#handler
    this.#request = undefined
    this.#handler = undefined
    handler?.failed(error, loss)
  }

  #fail(failure: UpstreamFailure): void {
    this.destroy(new DeviceFault(failure))
  }

  /** Only a new connection may be opened again. A request that found the connection open gets another connection. */
  mayOpenAgain(sent: boolean): boolean {
    const request = this.#request
    if (request === undefined || this.state === 'reused' || this.#reading.heard) return false
    return !sent || mayRepeat(request)
  }

  onOpenAgain(): void {
    this.state = 'opening'
    this.#socket = undefined
  }

  onOpen(socket: Socket): void {
    const request = this.#request
    this.#socket = socket
    this.state = request === undefined ? 'idle' : 'fresh'
    if (request === undefined) return
    if (this.#handler?.answered === true) {
      this.abort(TERMINATED)
      return
    }
    this.wait(this.#settings.deadlines.response)
    this.#write(request)
  }

  onClosedByDevice(): void {
    this.#owner.onClosedByDevice(this.#reading.heard)
  }

  onEnd(inOrder: boolean): void {
    this.heardAt = this.#settings.clock.monotonic()
    this.#reading.finish(inOrder)
  }

  onLost(error: unknown): void {
    this.destroy(error)
  }

  onClosed(): void {
    this.#owner.onClosed()
  }

  onInterim({ status, fields }: Http1ResponseHead): void {
    this.wait(this.#settings.deadlines.response, this.heardAt)
    this.#handler?.inform(status, fields)
  }

  onHead(head: Http1ResponseHead): void {
    const now = this.heardAt
    if (head.status === 408 && this.#isIdleTimeout(head) && this.#handler?.repeatsUnread === true) {
      this.#owner.onTimedOut()
      // The owner closes the connection.
      this.#giveUp(TERMINATED, 'unread')
      return
    }
    this.keptFor = head.keptFor
    // Some devices count the present request in `max`, and Apache does not. The lower reading is safe with both.
    if (head.most !== undefined) this.#most = Math.min(this.#most, this.#carried + head.most)
    this.#carried += 1
    this.wait(this.#settings.deadlines.idle, now)
    this.#handler?.head(head, now)
  }

  /**
   * Whether the device closes an idle connection with this 408 (RFC 9110 §15.5.9). The device sent it before it read the request, so it is
   * the first head on a reused connection.
   */
  #isIdleTimeout({ closes }: Http1ResponseHead): boolean {
    return closes && this.state === 'reused' && this.#reading.isFirst
  }

  onBody(chunk: Buffer): void {
    this.wait(this.#settings.deadlines.idle, this.heardAt)
    this.#handler?.data(chunk)
  }

  onWhole(last: Buffer | undefined, clean: boolean): void {
    const handler = this.#handler
    this.#handler = undefined
    // An idle connection may live long. It must not keep this request in memory.
    this.#request = undefined
    this.state = 'idle'
    const mayFollow = this.#mayFollow && this.#carried < this.#most
    if (this.#uploading !== undefined || !mayFollow || !this.#reading.persists) this.close()
    else if (!clean) this.#dropStray()
    handler?.end(last)
  }

  /** The request fails only when the connection has closed, so data before the fault still reaches the client. */
  onFault(fault: ResponseFault): void {
    this.#opener.fail(new DeviceFault(BY_RESPONSE_FAULT[fault]))
  }

  onSwitch(head: Http1ResponseHead, rest: Buffer): void {
    const socket = this.#opener.handOver()
    this.state = 'switched'
    this.#timer?.cancel()
    if (socket !== undefined) this.#handler?.switched?.(head, socket, rest)
    this.#handler = undefined
    this.#request = undefined
  }

  onMalformed(deviation: Deviation): void {
    const request = this.#request
    if (request === undefined) return
    this.#handler?.malformed?.(deviation)
    this.#settings.onMalformed(deviation, request)
  }

  #write(request: DeviceRequest): void {
    const { host, reuses, rules, version } = this.#settings
    this.#mayFollow = reuses && rules !== 'tolerant' && mayPersist(request)
    const head = writeRequestHead(request, host, this.#mayFollow, version)
    if (head === undefined) {
      this.#fail('http_protocol_error')
      return
    }
    const socket = this.#socket
    if (socket === undefined) return
    this.#handler?.sent?.(this.state === 'reused')
    if (this.#handler?.transmit !== undefined) this.#transmit(this.#handler, socket)
    else if (request.body === undefined) writeSoon(socket, head)
    else this.#upload(socket, head, request.body, request.framing)
  }

  /** Fails the request if `transmit` throws: a socket event may have led here, where no caller catches a bug. */
  #transmit(handler: ResponseHandler, socket: Socket): void {
    try {
      handler.transmit?.(socket, this.#settings.host)
    } catch (error) {
      this.destroy(error)
    }
  }

  #upload(
    socket: Socket,
    head: string,
    body: AsyncIterable<Buffer>,
    framing: DeviceRequest['framing'],
  ): void {
    this.#uploading = body
    this.#uploaded = 0
    const onSent = (size: number, whole: boolean): void => {
      if (this.#uploading !== body) return
      this.#uploaded += size
      this.wait(this.#settings.deadlines.response)
      if (!whole) return
      this.#uploading = undefined
      this.#handler?.uploaded?.()
    }
    sendUpload(this.#settings.clock, socket, head, body, framing, onSent).catch((error: unknown) => {
      if (this.#uploading === body) this.destroy(error)
    })
  }

  /**
   * Replaces the present wait by one of at most `time` (ms). A timer that fires earlier stays, and `#look` renews it: a timer for each wait
   * would cost more.
   */
  wait(time: number, now: number = this.#settings.clock.monotonic()): void {
    this.#due = now + time
    if (this.state === 'closed' || (this.#timer !== undefined && this.#firesAt <= this.#due)) return
    this.#timer?.cancel()
    this.#firesAt = this.#due
    this.#timer = this.#settings.clock.after(time, this.#look)
  }

  readonly #look = (): void => {
    this.#timer = undefined
    const left = this.#due - this.#settings.clock.monotonic()
    if (left > 0) this.wait(left)
    // No request is in flight: the idle time is over. A request that arrives now gets another connection.
    else if (this.#handler === undefined) this.close()
    else this.#late()
  }

  /** The response is late. An upload may go on waiting for its client, but not for a device that has stopped reading. */
  #late(): void {
    const { response } = this.#settings.deadlines
    if (this.state === 'opening') return
    if (this.#reading.head !== undefined) {
      if (!this.#paused) this.#fail('http_response_incomplete')
    } else if (this.#uploading !== undefined && this.#socket?.writableNeedDrain !== true) this.wait(response)
    else this.#fail('http_response_timeout')
  }

  get takesLarge(): boolean {
    return this.#handler?.takesLarge === true
  }

  get midResponse(): boolean {
    return this.#handler !== undefined
  }

  received(bytes: Buffer, length: number, keepable: number): Taken {
    // Bytes before the request are no response to it.
    if (this.state === 'opening') this.#fail('http_protocol_error')
    if (this.#handler === undefined) {
      if (this.state === 'closed' || onlyLineEnds(bytes, 0, length)) return 'small'
      if (STATUS_408.test(bytes.toString('latin1', 0, Math.min(length, STATUS_408_LENGTH)))) {
        this.#owner.onTimedOut()
        this.close()
      } else this.#dropStray()
      return 'small'
    }
    this.heardAt = this.#settings.clock.monotonic()
    try {
      return this.#reading.receive(bytes, length, keepable)
    } catch (error) {
      this.destroy(error)
      return 'kept'
    }
  }

  /** Closes the connection: the next request would get these bytes as its response (response desynchronization). */
  #dropStray(): void {
    this.#settings.onStray()
    this.close()
  }
}
