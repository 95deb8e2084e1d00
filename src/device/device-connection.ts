import type { Socket } from 'node:net'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Taken } from '../http1/body.ts'
import { onlyLineEnds } from '../http1/head-reader.ts'
import { mayPersist, mayRepeat, writeRequestHead } from '../http1/request-writer.ts'
import { type ResponseEvents, ResponseReader } from '../http1/response-reader.ts'
import { writeSoon } from '../system/write-soon.ts'
import { type ConnectionSettings, DeviceSocket } from './device-socket.ts'
import { BY_RESPONSE_FAULT, DeviceFault } from './failure.ts'
import { type DeviceRequest, type ResponseHandler, sendUpload } from './request.ts'

/** One connection to the device. It carries one request at a time, and stays open as long as both sides allow. */
export abstract class DeviceConnection<
  S extends ConnectionSettings = ConnectionSettings,
> extends DeviceSocket<S> {
  protected readonly reading: ResponseReader
  #handler: ResponseHandler | undefined
  #request: DeviceRequest | undefined
  #uploading: DeviceRequest['body']
  #uploaded = 0
  #paused = false
  /** The connection was open when the present request was sent. */
  #wasOpen = false
  /** The request allows another one on this connection. Its response decides too. */
  #mayFollow = false
  /** When the present wait is too long (ms): that for a response, for more of its body, or for another request. */
  #due = 0
  #looksAt = 0
  #timer: NodeJS.Timeout | undefined

  constructor(settings: S, repeatable: boolean, upgrade: boolean) {
    super(settings, repeatable, upgrade)
    const { clock, deadlines, known, onSloppy } = settings
    const events: ResponseEvents = {
      onInterim: ({ status, fields }) => {
        this.wait(deadlines.response)
        this.#handler?.inform(status, fields)
      },
      onHead: (head) => {
        const now = clock.monotonic()
        this.wait(deadlines.idle, now)
        this.#handler?.head(head, now)
      },
      onBody: (chunk) => {
        this.wait(deadlines.idle)
        this.#handler?.data(chunk)
      },
      onWhole: (last, clean) => {
        const handler = this.#handler
        this.#handler = undefined
        // The connection may wait for the next request for long, and must not hold this one.
        this.#request = undefined
        if (this.#uploading !== undefined || !this.#mayFollow || !this.reading.persists) this.close()
        else if (!clean) this.#dropStray()
        handler?.end(last)
      },
      // The request fails only when the connection has closed, so data before the fault still reaches the client.
      onFault: (fault) => {
        this.fault = new DeviceFault(BY_RESPONSE_FAULT[fault])
        this.socket?.destroy()
      },
      onSwitch: (head, rest) => {
        const socket = this.socket?.off('data', this.onData).pause()
        this.state = 'switched'
        clearTimeout(this.#timer)
        if (socket !== undefined) this.#handler?.switched?.(head, socket, rest)
        this.#handler = undefined
        this.#request = undefined
      },
      onSloppy: (deviation) => {
        if (this.#request === undefined) return
        this.#handler?.deviates?.(deviation)
        onSloppy(deviation, this.#request)
      },
    }
    this.reading = new ResponseReader(events, known)
  }

  /** The bytes of the upload that the device has taken; undefined unless it has taken all that the client sent, and waits for more. */
  get uploaded(): number | undefined {
    const busy = this.#uploading === undefined || this.socket === undefined || this.socket.writableLength > 0
    return busy ? undefined : this.#uploaded
  }

  /** The connection was open before this request, and no byte has come since. If it breaks now, the device closed it while it was idle. */
  get reused(): boolean {
    return this.#wasOpen && !this.reading.heard
  }

  send(request: DeviceRequest, handler: ResponseHandler): void {
    this.#request = request
    this.#handler = handler
    this.#paused = false
    this.#wasOpen = this.state === 'open'
    if (this.state === 'closed') this.abort(this.fault)
    else this.reading.expect(request.method, this.settings.rules, request.upgrade)
    if (this.state === 'open') this.#write(request)
  }

  othersWait(): void {
    this.#handler?.othersWait?.()
  }

  pause(): void {
    this.#paused = true
    this.socket?.pause()
  }

  resume(): void {
    this.#paused = false
    this.wait(this.settings.deadlines.idle)
    this.socket?.resume()
  }

  /**
   * Ends the attempt. Calls `failed` with `error` before it returns. A connection that is still opening stays open: no byte of the
   * request was sent, so it can carry another request.
   */
  abort(error: unknown): void {
    if (this.state !== 'connecting') this.close()
    const handler = this.#handler
    this.#request = undefined
    this.#handler = undefined
    handler?.failed(error, !this.reading.heard)
  }

  destroy(error: unknown): void {
    this.close()
    this.socket?.destroy()
    this.abort(error)
  }

  close(): void {
    if (this.state === 'closed') return
    const idle = this.state === 'open' && this.#handler === undefined && this.#uploading === undefined
    this.reading.close()
    clearTimeout(this.#timer)
    this.closeSocket(idle)
  }

  /** A connection that was open before is not opened again: the request gets another one. */
  protected override mayOpenAgain(sent: boolean): boolean {
    const request = this.#handler && this.#request
    if (request === undefined || this.#wasOpen || this.reading.heard) return false
    return !sent || mayRepeat(request)
  }

  protected override finished(inOrder: boolean): void {
    this.reading.finish(inOrder)
  }

  #fail(failure: UpstreamFailure): void {
    this.destroy(new DeviceFault(failure))
  }

  protected override opened(): void {
    if (this.#request === undefined) return
    this.wait(this.settings.deadlines.response)
    this.#write(this.#request)
  }

  #write(request: DeviceRequest): void {
    const { host, reuse, rules, acks, version } = this.settings
    this.#mayFollow = reuse === 'shared' && !acks.found && rules !== 'tolerant' && mayPersist(request)
    const head = writeRequestHead(request, host, this.#mayFollow, version)
    if (head === undefined) {
      this.#fail('http_protocol_error')
      return
    }
    const socket = this.socket
    if (socket === undefined) return
    this.#handler?.sent?.()
    if (request.transmit !== undefined) this.#transmit(request, socket)
    else if (request.body === undefined) writeSoon(socket, head)
    else this.#upload(socket, head, request.body, request.framing)
  }

  /** An event of the socket may have led here, and no caller would catch a bug. */
  #transmit(request: DeviceRequest, socket: Socket): void {
    try {
      request.transmit?.(socket, this.settings.host)
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
      this.wait(this.settings.deadlines.response)
      if (!whole) return
      this.#uploading = undefined
      this.#handler?.uploaded?.()
    }
    sendUpload(socket, head, body, framing, onSent).catch((error: unknown) => {
      if (this.#uploading === body) this.destroy(error)
    })
  }

  /** Begins a wait of at most `time` (ms) in place of the one before. A timer that looks at them costs less than one for each. */
  protected wait(time: number, now: number = this.settings.clock.monotonic()): void {
    this.#due = now + time
    if (this.state === 'closed' || (this.#timer !== undefined && this.#looksAt <= this.#due)) return
    clearTimeout(this.#timer)
    this.#looksAt = this.#due
    this.#timer = setTimeout(this.#look, time).unref()
  }

  readonly #look = (): void => {
    this.#timer = undefined
    const left = this.#due - this.settings.clock.monotonic()
    if (left <= 0) this.#late()
    else this.wait(left)
  }

  /**
   * The next request or the response is late. An upload that waits for the client may wait on, but not one that the device has stopped
   * reading.
   */
  #late(): void {
    const { response } = this.settings.deadlines
    if (this.#handler === undefined) this.close()
    else if (this.state !== 'open') return
    else if (this.reading.head !== undefined) {
      if (!this.#paused) this.#fail('http_response_incomplete')
    } else if (this.#uploading !== undefined && this.socket?.writableNeedDrain !== true) this.wait(response)
    else this.#fail('http_response_timeout')
  }

  override get takesLarge(): boolean {
    return this.#handler?.takesLarge === true
  }

  override get midResponse(): boolean {
    return this.#handler !== undefined
  }

  override received(bytes: Buffer, length: number, keepable: number): Taken {
    // Bytes before the request are no response to it.
    if (this.state === 'connecting') this.#fail('http_protocol_error')
    if (this.#handler === undefined) {
      if (this.state !== 'closed' && !onlyLineEnds(bytes, 0, length)) this.#dropStray()
      return 'small'
    }
    try {
      return this.reading.receive(bytes, length, keepable)
    } catch (error) {
      this.destroy(error)
      return 'kept'
    }
  }

  /** Closes the connection: the next request would get these bytes as its response (response desynchronization). */
  #dropStray(): void {
    this.settings.onStray()
    this.close()
  }
}
