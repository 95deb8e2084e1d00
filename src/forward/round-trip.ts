import type { Connection, Connections } from '../device/connections.ts'
import { failureOf } from '../device/failure.ts'
import type { DeviceHead, ResponseHandler } from '../device/response-handler.ts'
import { type Forward, hasBody } from '../http/admission.ts'
import { type Exchange, StalledBodyError } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { BufferedBody } from './buffered-body.ts'
import { idleIn, type Pace, watchPace } from './pace.ts'
import type { ClientFields } from './response-fields.ts'

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

/** A request to the device, and how its response is handled. */
export interface RoundTripRequest {
  readonly admission: Forward
  readonly exchange: Exchange
  /** The header fields for the device. */
  readonly fields: readonly string[]
  /** A buffered body, sent in place of the client's. */
  readonly body: BufferedBody | undefined
  /** The rate-limit fields, which follow the device's fields in the response. */
  readonly limitFields: Fields
  /** Turns the device's header fields into the client's. */
  project(head: DeviceHead): ClientFields
  /** Called when the exchange has taken the head of the final response. */
  onHead(): void
  /** Called once. */
  onEnd(end: RoundTripEnd): void
}

/** What all requests to one device share. */
export interface RoundTripSettings {
  readonly connections: Connections
  /** How long a client may pause within its request body (ms). */
  readonly uploadTimeout: () => number
  readonly paces: { readonly upload: Pace; readonly download: Pace }
}

/**
 * Sends a request to the device and relays the response to the client. One fault is repaired: if the device closed the
 * keep-alive connection while it was idle, a request that is safe to repeat is sent once more, on another connection (C24).
 */
export function forwardToDevice(request: RoundTripRequest, settings: RoundTripSettings): void {
  // `answered` is also true if the grant was revoked while the request waited: its refusal may still be in flight.
  if (request.exchange.answered) request.onEnd({ kind: 'abandoned' })
  else RoundTrip.start(request, settings)
}

/**
 * One request at the device. It relays the response piece by piece: a client that is slower than the device pauses the device's
 * connection, so the response does not pile up in memory. Exported for the test that counts the objects left after a request.
 */
export class RoundTrip implements ResponseHandler {
  readonly #request: RoundTripRequest
  readonly #settings: RoundTripSettings
  #connection: Connection | undefined
  /** If the device closed the connection while it was idle, the request is sent again. */
  #mayRepeat: boolean
  /** The client's response is the device's, not a refusal. */
  #begun = false
  /** The device is paused until the client has read its backlog. */
  #paused = false
  #drains = 0
  #upload: NodeJS.Timeout | undefined
  #download: NodeJS.Timeout | undefined

  static start(request: RoundTripRequest, settings: RoundTripSettings): void {
    new RoundTrip(request, settings).#attempt()
  }

  private constructor(request: RoundTripRequest, settings: RoundTripSettings) {
    this.#request = request
    this.#settings = settings
    this.#mayRepeat = isRepeatable(request.exchange.head.method, request.admission)
    request.exchange.onEnd(() => this.#clientLeft())
  }

  #attempt(): void {
    const { admission, exchange, fields, body: buffered } = this.#request
    const { connections, uploadTimeout } = this.#settings
    const { target, framing } = admission
    const { method } = exchange.head
    try {
      const connection = connections.borrow(this.#mayRepeat)
      this.#connection = connection
      const body = hasBody(admission) ? (buffered?.open() ?? exchange.body(uploadTimeout())) : undefined
      if (body !== undefined && exchange.arrived < Number.POSITIVE_INFINITY) this.#watchUpload()
      connection.send({ method, target, fields, framing, body }, this)
    } catch (error) {
      this.#finish({ kind: 'bug', error })
    }
  }

  sent(): void {
    const { trace } = this.#request.admission
    trace.attempts += 1
    trace.reused = this.#connection?.reused === true
  }

  inform(status: number, fields: Fields): void {
    const { exchange, limitFields } = this.#request
    const projected = this.#request.project({ status, reason: '', fields, remembered: false })
    exchange.inform(status, [...projected.fields, ...limitFields])
  }

  head(head: DeviceHead): void {
    const request = this.#request
    const { admission, exchange, limitFields } = request
    const { status, reason } = head
    admission.trace.status = status
    admission.trace.tolerant = this.#settings.connections.tolerant
    this.#begun = !exchange.answered
    try {
      const { fields, reusable } = request.project(head)
      exchange.begin({ status, reason, fields, reusable, limitFields })
    } catch (error) {
      // For example a status that HTTP/2 cannot carry. Only this response fails; the rules by which the device is read stay.
      this.#connection?.abort(error)
      return
    }
    request.onHead()
  }

  data(chunk: Buffer): void {
    const { exchange } = this.#request
    // `write` may have cut the exchange, because too much is queued for its client.
    if (exchange.write(chunk) || this.#connection === undefined) return
    this.#connection.pause()
    this.#paused = true
    if (this.#download === undefined) this.#watchDownload()
  }

  end(last?: Buffer): void {
    this.#request.exchange.end(last)
    this.#finish({ kind: 'relayed' })
  }

  failed(error: unknown, silent: boolean): void {
    const { exchange } = this.#request
    if (!exchange.answered) {
      // The device closed the connection before it read the request.
      const stale =
        this.#connection?.reused === true && silent && failureOf(error) === 'connection_terminated'
      if (stale && this.#mayRepeat) this.#repeat()
      else this.#finish({ kind: 'failed', error, silent })
    } else if (exchange.ended || !this.#begun) this.#finish({ kind: 'abandoned' })
    else {
      // The connection has no handler any more, so the `abort` that `cut` causes does nothing.
      exchange.cut()
      this.#finish({ kind: 'broken', error })
    }
  }

  #repeat(): void {
    this.#mayRepeat = false
    this.#connection?.release(false)
    this.#connection = undefined
    this.#attempt()
  }

  /** What the device got of an unfinished request is worth nothing, so its connection closes. */
  #watchUpload(): void {
    const { exchange, admission } = this.#request
    const waited = idleIn(admission.trace.waited, exchange)
    this.#upload = watchPace(
      this.#settings.paces.upload,
      waited,
      () => this.#connection?.uploaded,
      () => this.#connection?.abort(new StalledBodyError()),
    )
  }

  #watchDownload(): void {
    const { exchange } = this.#request
    exchange.onDrain(() => {
      this.#paused = false
      this.#drains += 1
      this.#connection?.resume()
    })
    this.#download = watchPace(
      this.#settings.paces.download,
      0,
      () => (this.#paused ? this.#drains : undefined),
      () => exchange.cut(),
    )
  }

  #clientLeft(): void {
    clearInterval(this.#upload)
    clearInterval(this.#download)
    this.#connection?.abort(new Error('the client has left'))
  }

  /** Gives the connection back, then reports the end. Runs once: afterwards the connection has no handler. */
  #finish(end: RoundTripEnd): void {
    const connection = this.#connection
    this.#connection = undefined
    clearInterval(this.#upload)
    clearInterval(this.#download)
    connection?.release(end.kind === 'relayed')
    this.#request.onEnd(end)
  }
}

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether a request may be sent again although the first may have arrived: a safe method (RFC 9110 §9.2.1), no body. */
function isRepeatable(method: string, { framing }: Forward): boolean {
  return framing === null && SAFE.has(method)
}
