import type { Loan } from '../device/connections.ts'
import { failureOf } from '../device/failure.ts'
import type { DeviceHead, DeviceRequest, Loss, ResponseHandler } from '../device/request.ts'
import type { Classified } from '../http/admission.ts'
import type { ClientSide } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import { limitFields } from '../http/limit-fields.ts'
import { StalledBodyError } from '../http/refusal.ts'
import { type Deviation, describeDeviation } from '../http1/deviation.ts'
import { isSafe, mayRepeat } from '../http1/request-writer.ts'
import type { Leave } from '../system/bounded-queue.ts'
import type { DevicePlace } from './device-places.ts'
import type { Forwarded } from './forwarded.ts'
import { idleIn, watchPace } from './place.ts'
import { requestFields, requestLines } from './request-fields.ts'
import { responseHead } from './response-fields.ts'
import type { Detour, RoundTripEnd, RoundTripService } from './round-trip-service.ts'
import { streamStart, TOO_MANY_STREAMS } from './streams.ts'

const RELAYED: RoundTripEnd = { kind: 'relayed' }

type OnEnd = (end: RoundTripEnd, request: Forwarded) => void

const STRAIGHT: Detour = {}
const NO_FIELDS: Fields = []

/**
 * Sends a request to the device and relays the response to the client. One fault is repaired: if the device closed the
 * keep-alive connection while it was idle, a request that is safe to repeat is sent once more, on another connection (C24).
 */
export function forwardToDevice(
  service: RoundTripService,
  request: Forwarded,
  onEnd: OnEnd,
  detour: Detour = STRAIGHT,
): void {
  // `answered` is also true if the grant was revoked while the request waited: its refusal may still be in flight.
  if ((detour.client ?? request).answered) onEnd({ kind: 'abandoned' }, request)
  else new RoundTrip(service, request, onEnd, detour).attempt()
}

/**
 * One request at the device. It relays the response piece by piece: a client that is slower than the device pauses the device's
 * connection, so the response does not pile up in memory. Exported for the test that counts the objects left after a request.
 */
export class RoundTrip<R extends Forwarded = Forwarded, D extends Detour = Detour>
  implements ResponseHandler, DeviceRequest
{
  readonly method: string
  readonly target: string
  readonly framing: Classified['framing']
  readonly lines: string | undefined
  readonly fields: Fields
  readonly upgrade: boolean = false
  body: AsyncIterable<Buffer> | undefined
  protected readonly service: RoundTripService
  protected readonly request: R
  protected readonly detour: D
  readonly #client: ClientSide
  readonly #onEnd: OnEnd
  readonly #start: number
  protected loan: Loan | undefined
  #place: DevicePlace | undefined
  /** If the device closed the connection while it was idle, the request is sent again. */
  #mayRepeat: boolean
  /** The client's response is the device's, not a refusal. */
  #begun = false
  /** The request is at the device, and may change it. */
  #changes = false
  /** The device is paused until the client has read its backlog. */
  #paused = false
  #drains = 0
  /** The response has no length, or the type of a stream: it may become one. */
  #endless = false
  #leaveStreams: Leave | undefined
  #upload: NodeJS.Timeout | undefined
  #download: NodeJS.Timeout | undefined

  constructor(service: RoundTripService, request: R, onEnd: OnEnd, detour: D) {
    const { head, classified } = request
    const { client = request, framing = classified.framing, fields } = detour
    this.method = head.method
    this.target = classified.target
    this.framing = framing
    const plain = detour === STRAIGHT && service.connections.version === '1.1'
    this.lines = plain ? requestLines(request, service.fields.request) : undefined
    const needed = this.lines === undefined && fields === undefined
    this.fields = needed ? requestFields(request, framing, service.fields.request) : (fields ?? NO_FIELDS)
    this.service = service
    this.request = request
    this.#client = client
    this.detour = detour
    this.#onEnd = onEnd
    this.#mayRepeat = mayRepeat(this)
    this.#start = service.clock.monotonic()
    // A request with the sidecar's own login may be sent again.
    if (request.sentAt === 0) request.sentAt = this.#start
    client.onEnd(() => this.#clientLeft())
  }

  attempt(now: number = this.#start): void {
    const { connections, uploadTimeout } = this.service
    try {
      const loan = connections.borrow(this.#mayRepeat, this.upgrade, now)
      this.loan = loan
      if (this.framing !== null && this.framing !== 0) {
        this.body = this.detour.body?.open() ?? this.request.body(uploadTimeout())
        if (this.request.arrived < Number.POSITIVE_INFINITY) this.#watchUpload()
      }
      loan.connection.send(this, this)
    } catch (error) {
      this.finish({ kind: 'bug', error })
    }
  }

  sent(reused: boolean): void {
    if (!this.#changes && !isSafe(this.method)) {
      this.#changes = true
      this.service.learner?.changing(1)
    }
    this.request.attempts += 1
    this.request.reused = reused
    if (this.body === undefined) this.uploaded()
  }

  uploaded(): void {
    const { learner } = this.service
    if (learner === undefined || this.upgrade || this.#client.answered) return
    learner.left(this.#place)
    this.#place = learner.sent(this.target)
  }

  inform(status: number, fields: Fields): void {
    const { response } = this.service.fields
    const projected = responseHead({ status, reason: '', fields, remembered: false }, this.request, response)
    this.#client.inform(status, [...projected.fields, ...limitFields(this.request)])
  }

  head(head: DeviceHead, now: number): void {
    const { request, service } = this
    const { connections, fields, breaker, events, learner } = service
    if (this.#place !== undefined) learner?.answered(this.#place, now)
    request.deviceStatus = head.status
    request.tolerant = connections.tolerant
    const isByType = head.isStream === true && head.framing !== 0
    this.#endless = isByType || head.framing === 'chunked' || head.framing === 'end'
    request.streamAt = isByType ? now : this.#endless ? streamStart(head, now, service.streamAfter) : 0
    if (isByType && service.streams?.allowed === true && !this.#becomeStream()) {
      breaker.succeeded()
      this.loan?.connection.abort(TOO_MANY_STREAMS)
      return
    }
    this.#begun = !this.#client.answered
    try {
      this.#client.begin(responseHead(head, request, fields.response))
    } catch (error) {
      // For example a status that HTTP/2 cannot carry. Only this response fails; the rules by which the device is read stay.
      this.loan?.connection.abort(error)
      return
    }
    breaker.succeeded()
    request.headAt = now
    events.responded(now - this.#start)
  }

  deviates(deviation: Deviation): void {
    this.request.deviation = describeDeviation(deviation)
  }

  /** A response that goes on for long gives its place back, unless there are too many streams. */
  othersWait(): void {
    const { streams, streamAfter, clock } = this.service
    if (streams?.allowed !== true || !this.#endless || this.#leaveStreams !== undefined) return
    if (clock.monotonic() - this.request.headAt >= streamAfter) this.#becomeStream()
  }

  #becomeStream(): boolean {
    this.#leaveStreams = this.service.streams?.tryEnter(this.request.client.key)
    if (this.#leaveStreams === undefined) return false
    this.request.leavePlace?.()
    // Its reader is not judged for a place that it does not hold.
    if (this.#download !== undefined) this.#watchDownload()
    return true
  }

  get takesLarge(): boolean {
    return this.#client.takesLarge
  }

  data(chunk: Buffer): void {
    // `write` may have cut the exchange, because too much is queued for its client.
    if (this.#client.write(chunk) || this.loan === undefined) return
    this.loan.connection.pause()
    this.#paused = true
    if (this.#download === undefined) this.#watchDownload()
  }

  end(last?: Buffer): void {
    this.#client.end(last)
    this.finish(RELAYED)
  }

  failed(error: unknown, loss: Loss): void {
    const client = this.#client
    if (!client.answered) {
      // The device closed the connection before it read the request.
      const stale = loss === 'stale' && failureOf(error) === 'connection_terminated'
      if (stale && this.#mayRepeat) this.#repeat()
      else this.finish({ kind: 'failed', error, silent: loss !== 'begun' })
    } else if (client.ended || !this.#begun) this.finish({ kind: 'abandoned' })
    else {
      // The connection has no handler any more, so the `abort` that `cut` causes does nothing.
      client.cut()
      this.finish({ kind: 'broken', error })
    }
  }

  #repeat(): void {
    this.#mayRepeat = false
    this.loan?.release(false)
    this.loan = undefined
    this.attempt(this.service.clock.monotonic())
  }

  /** What the device got of an unfinished request is worth nothing, so its connection closes. */
  #watchUpload(): void {
    this.#upload = watchPace(
      this.service.pace,
      idleIn(this.request.waited, this.request),
      () => this.loan?.connection.uploaded,
      () => this.loan?.connection.abort(new StalledBodyError()),
    )
  }

  #watchDownload(): void {
    this.#client.onDrain(() => {
      this.#paused = false
      this.#drains += 1
      this.loan?.connection.resume()
    })
    const { downloadPace } = this.service
    clearInterval(this.#download)
    this.#download = watchPace(
      this.#leaveStreams === undefined ? downloadPace : { ...downloadPace, isCrowded: () => false },
      0,
      () => (this.#paused ? this.#drains : undefined),
      () => this.#client.cut(),
    )
  }

  /** After the end there is no connection. Before it, `abort` causes the end, which stops what watches the client. */
  #clientLeft(): void {
    this.loan?.connection.abort(new Error('the client has left'))
  }

  /** Gives the connection back, then reports the end. Runs once: afterwards the connection has no handler. */
  protected finish(end: RoundTripEnd): void {
    const loan = this.loan
    this.loan = undefined
    clearInterval(this.#upload)
    clearInterval(this.#download)
    this.#leaveStreams?.()
    if (this.#changes) this.service.learner?.changing(-1)
    this.service.learner?.left(this.#place, end.kind === 'failed' ? end.error : undefined)
    loan?.release(end.kind === 'relayed')
    this.#onEnd(end, this.request)
  }
}
