import type { Breaker } from '../device/breaker.ts'
import type { Connection, Connections } from '../device/connections.ts'
import { failureOf } from '../device/failure.ts'
import type { DeviceHead, DeviceRequest, ResponseHandler } from '../device/response-handler.ts'
import type { Classified } from '../http/admission.ts'
import type { ClientSide, Forward } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import { limitFields } from '../http/limit-fields.ts'
import { StalledBodyError } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import type { BufferedBody } from './buffered-body.ts'
import { idleIn, type Pace, watchPace } from './pace.ts'
import { type RequestFieldSettings, requestFields, requestLines } from './request-fields.ts'
import { type ResponseFieldSettings, responseHead } from './response-fields.ts'

/** How a request to the device ended. */
export type RoundTripEnd =
  | { readonly kind: 'relayed' }
  /** The client has no response yet, so the caller may refuse it. `silent`: the device sent no byte. */
  | { readonly kind: 'failed'; readonly error: unknown; readonly silent: boolean }
  /** The response broke off after its head was sent, and the client sees it broken. */
  | { readonly kind: 'broken'; readonly error: unknown }
  /** The client left, or got another response, before the device's response ended. */
  | { readonly kind: 'abandoned' }
  /** A bug of the sidecar. It says nothing about the device. */
  | { readonly kind: 'bug'; readonly error: unknown }

const RELAYED: RoundTripEnd = { kind: 'relayed' }

/** What all requests to one device share. */
export interface RoundTripService {
  readonly connections: Connections
  /** How long a client may pause within its request body (ms). */
  readonly uploadTimeout: () => number
  readonly paces: { readonly upload: Pace; readonly download: Pace }
  /** How header fields change on the way. A reload replaces what it holds. */
  readonly fields: { readonly request: RequestFieldSettings; readonly response: ResponseFieldSettings }
  readonly breaker: Breaker
  readonly clock: Clock
  readonly events: {
    /** @param duration time (ms) from sending the request to the head of the device's response */
    readonly responded: (duration: number) => void
  }
}

/** In what a request to the device differs from the one of its client. */
export interface Detour {
  /** Receives the response in place of the client. */
  readonly client?: ClientSide
  readonly fields?: Fields
  readonly framing?: Classified['framing']
  /** A buffered body, sent in place of the client's. */
  readonly body?: BufferedBody | undefined
}

type OnEnd = (end: RoundTripEnd) => void

const STRAIGHT: Detour = {}

/**
 * Sends a request to the device and relays the response to the client. One fault is repaired: if the device closed the
 * keep-alive connection while it was idle, a request that is safe to repeat is sent once more, on another connection (C24).
 */
export function forwardToDevice(
  service: RoundTripService,
  request: Forward,
  onEnd: OnEnd,
  detour: Detour = STRAIGHT,
): void {
  // `answered` is also true if the grant was revoked while the request waited: its refusal may still be in flight.
  if (request.answered) onEnd({ kind: 'abandoned' })
  else new RoundTrip(service, request, onEnd, detour).attempt()
}

/**
 * One request at the device. It relays the response piece by piece: a client that is slower than the device pauses the device's
 * connection, so the response does not pile up in memory. Exported for the test that counts the objects left after a request.
 */
export class RoundTrip implements ResponseHandler, DeviceRequest {
  readonly method: string
  readonly target: string
  readonly framing: Classified['framing']
  readonly lines: string | undefined
  readonly fields: Fields
  readonly upgrade: boolean = false
  body: AsyncIterable<Buffer> | undefined
  protected readonly service: RoundTripService
  protected readonly request: Forward
  readonly #client: ClientSide
  readonly #buffered: BufferedBody | undefined
  readonly #onEnd: OnEnd
  readonly #start: number
  protected connection: Connection | undefined
  /** If the device closed the connection while it was idle, the request is sent again. */
  #mayRepeat: boolean
  /** The client's response is the device's, not a refusal. */
  #begun = false
  /** The device is paused until the client has read its backlog. */
  #paused = false
  #drains = 0
  #upload: NodeJS.Timeout | undefined
  #download: NodeJS.Timeout | undefined

  constructor(service: RoundTripService, request: Forward, onEnd: OnEnd, detour: Detour) {
    const { head, classified } = request
    const { client = request, framing = classified.framing, fields } = detour
    this.method = head.method
    this.target = classified.target
    this.framing = framing
    const plain = detour === STRAIGHT && service.connections.version === '1.1'
    this.lines = plain ? requestLines(request, service.fields.request) : undefined
    const needed = this.lines === undefined && fields === undefined
    this.fields = needed ? requestFields(request, framing, service.fields.request) : (fields ?? [])
    this.service = service
    this.request = request
    this.#client = client
    this.#buffered = detour.body
    this.#onEnd = onEnd
    this.#mayRepeat = framing === null && SAFE.has(head.method)
    this.#start = service.clock.monotonic()
    // A request with the sidecar's own login may be sent again.
    if (request.sentAt === 0) request.sentAt = this.#start
    client.onEnd(() => this.#clientLeft())
  }

  attempt(): void {
    const { connections, uploadTimeout } = this.service
    try {
      const connection = connections.borrow(this.#mayRepeat, this.upgrade)
      this.connection = connection
      if (this.framing !== null && this.framing !== 0) {
        this.body = this.#buffered?.open() ?? this.#client.body(uploadTimeout())
        if (this.request.arrived < Number.POSITIVE_INFINITY) this.#watchUpload()
      }
      connection.send(this, this)
    } catch (error) {
      this.finish({ kind: 'bug', error })
    }
  }

  sent(): void {
    this.request.attempts += 1
    this.request.reused = this.connection?.reused === true
  }

  inform(status: number, fields: Fields): void {
    const { response } = this.service.fields
    const projected = responseHead({ status, reason: '', fields, remembered: false }, this.request, response)
    this.#client.inform(status, [...projected.fields, ...limitFields(this.request)])
  }

  head(head: DeviceHead): void {
    const request = this.request
    const { connections, fields, breaker, clock, events } = this.service
    request.deviceStatus = head.status
    request.tolerant = connections.tolerant
    this.#begun = !this.#client.answered
    try {
      this.#client.begin(responseHead(head, request, fields.response))
    } catch (error) {
      // For example a status that HTTP/2 cannot carry. Only this response fails; the rules by which the device is read stay.
      this.connection?.abort(error)
      return
    }
    breaker.succeeded()
    request.headAt = clock.monotonic()
    events.responded(request.headAt - this.#start)
  }

  data(chunk: Buffer): void {
    // `write` may have cut the exchange, because too much is queued for its client.
    if (this.#client.write(chunk) || this.connection === undefined) return
    this.connection.pause()
    this.#paused = true
    if (this.#download === undefined) this.#watchDownload()
  }

  end(last?: Buffer): void {
    this.#client.end(last)
    this.finish(RELAYED)
  }

  failed(error: unknown, silent: boolean): void {
    const client = this.#client
    if (!client.answered) {
      // The device closed the connection before it read the request.
      const stale = this.connection?.reused === true && silent && failureOf(error) === 'connection_terminated'
      if (stale && this.#mayRepeat) this.#repeat()
      else this.finish({ kind: 'failed', error, silent })
    } else if (client.ended || !this.#begun) this.finish({ kind: 'abandoned' })
    else {
      // The connection has no handler any more, so the `abort` that `cut` causes does nothing.
      client.cut()
      this.finish({ kind: 'broken', error })
    }
  }

  #repeat(): void {
    this.#mayRepeat = false
    this.connection?.release(false)
    this.connection = undefined
    this.attempt()
  }

  /** What the device got of an unfinished request is worth nothing, so its connection closes. */
  #watchUpload(): void {
    this.#upload = watchPace(
      this.service.paces.upload,
      idleIn(this.request.waited, this.request),
      () => this.connection?.uploaded,
      () => this.connection?.abort(new StalledBodyError()),
    )
  }

  #watchDownload(): void {
    this.#client.onDrain(() => {
      this.#paused = false
      this.#drains += 1
      this.connection?.resume()
    })
    this.#download = watchPace(
      this.service.paces.download,
      0,
      () => (this.#paused ? this.#drains : undefined),
      () => this.#client.cut(),
    )
  }

  #clientLeft(): void {
    clearInterval(this.#upload)
    clearInterval(this.#download)
    this.connection?.abort(new Error('the client has left'))
  }

  /** Gives the connection back, then reports the end. Runs once: afterwards the connection has no handler. */
  protected finish(end: RoundTripEnd): void {
    const connection = this.connection
    this.connection = undefined
    clearInterval(this.#upload)
    clearInterval(this.#download)
    connection?.release(end.kind === 'relayed')
    this.#onEnd(end)
  }
}

/** Methods that may be repeated although the first request may have arrived (RFC 9110 §9.2.1). */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])
