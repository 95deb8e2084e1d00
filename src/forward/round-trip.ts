import type { Loan } from '../device/connections.ts'
import { failureOf } from '../device/failure.ts'
import type { DeviceHead, DeviceRequest, Loss, ResponseHandler } from '../device/request.ts'
import type { ClientSide } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import { limitFields } from '../http/limit-fields.ts'
import { isSafe } from '../http/scope.ts'
import { type Deviation, describeDeviation } from '../http1/deviation.ts'
import { mayRepeat } from '../http1/request-writer.ts'
import type { Leave } from '../system/bounded-queue.ts'
import type { Timer } from '../system/clock.ts'
import { Backpressure } from './backpressure.ts'
import type { DevicePlace } from './device-places.ts'
import type { ForwardExchange } from './forward-exchange.ts'
import { type Pace, watchUpload } from './pace.ts'
import { requestFields, requestLines } from './request-fields.ts'
import { responseHead } from './response-fields.ts'
import type { RoundTripEnd, RoundTripService, Substitutes } from './round-trip-service.ts'
import { type Extent, extentOf, streamStart, TOO_MANY_STREAMS } from './streams.ts'
import { FAST } from './usual-times.ts'

const CLIENT_LEFT: Error = new Error('the client has left')
const RELAYED: RoundTripEnd = { kind: 'relayed' }

/** The request as the device gets it. Each attempt opens its body anew. */
interface Outgoing extends DeviceRequest {
  readonly upgrade: boolean
  body: DeviceRequest['body']
}

type OnEnd = (end: RoundTripEnd, exchange: ForwardExchange) => void

/** The request goes as the client sent it. */
const AS_SENT: Substitutes = {}
const NO_FIELDS: Fields = []

/**
 * Sends a request to the device and relays the response to the client. One fault is repaired: the device closed the keep-alive connection
 * while it was idle. Then a request that is safe to repeat is sent once more, on another connection (C24). After the 408 of an idle
 * connection, so is every request whose body is still there, because the device has not read it.
 */
export function forwardToDevice(
  service: RoundTripService,
  exchange: ForwardExchange,
  onEnd: OnEnd,
  substitutes: Substitutes = AS_SENT,
  now?: number,
): void {
  // `answered` is also true if the grant was revoked while the request waited: its refusal may still be in flight.
  if ((substitutes.client ?? exchange).answered) onEnd({ kind: 'abandoned' }, exchange)
  else new RoundTrip(service, exchange, onEnd, substitutes, now).attempt()
}

/**
 * One request at the device, in one attempt or two. It relays the response piece by piece, and tells the learner what happens. Exported for
 * the test that counts the objects left after a request.
 */
export class RoundTrip<R extends ForwardExchange = ForwardExchange, S extends Substitutes = Substitutes>
  implements ResponseHandler
{
  protected readonly outgoing: Outgoing
  protected readonly service: RoundTripService
  protected readonly exchange: R
  protected readonly substitutes: S
  readonly #client: ClientSide
  readonly #onEnd: OnEnd
  readonly #start: number
  protected loan: Loan | undefined
  /** When the present attempt began, and when its last byte was sent; 0: it is not sent yet. */
  #attemptedAt: number
  #sentAt = 0
  /** The socket to the device has taken every byte of the body. */
  #uploaded = false
  /** The head of its response has come. */
  #responded = false
  /** Undefined if the learner was not told of the request. */
  #place: DevicePlace | undefined
  /** The request has reached the device, and its method may change the device. */
  #changes = false
  /** Whether the request may be sent a second time if the device closed the connection while it was idle. */
  readonly #mayRepeat: boolean
  /** The request was sent again, which happens at most once. */
  #repeated = false
  /** The client has got the head of the device's response, not a refusal. */
  #begun = false
  #extent: Extent = 'counted'
  /** Gives back the place among the streams; undefined until the response has become a stream. */
  #leaveStreams: Leave | undefined
  #uploadWatch: Timer | undefined
  /** Ends an upload whose client has left, if the device does not finish it in time; and gives back its place among them. */
  #finishing: Timer | undefined
  #leaveFinishing: Leave | undefined
  /** Undefined until the client first reads more slowly than the device sends. */
  #backpressure: Backpressure | undefined

  constructor(
    service: RoundTripService,
    exchange: R,
    onEnd: OnEnd,
    substitutes: S,
    now: number = service.clock.monotonic(),
  ) {
    const { head, classified } = exchange
    const { client = exchange, framing = classified.framing, fields } = substitutes
    const plain = substitutes === AS_SENT && service.connections.version === '1.1'
    const lines = plain ? requestLines(exchange, service.fields.request) : undefined
    const needed = lines === undefined && fields === undefined
    this.outgoing = {
      method: head.method,
      target: classified.target,
      framing,
      lines,
      fields: needed ? requestFields(exchange, framing, service.fields.request) : (fields ?? NO_FIELDS),
      upgrade: head.upgrade,
      body: undefined,
    }
    this.service = service
    this.exchange = exchange
    this.#client = client
    this.substitutes = substitutes
    this.#onEnd = onEnd
    this.#mayRepeat = mayRepeat(this.outgoing)
    this.#start = this.#attemptedAt = now
    // A request with the sidecar's own login may be sent again.
    if (exchange.sentAt === 0) exchange.sentAt = this.#start
    // After the end of the attempt there is no loan.
    client.onEnd(() => {
      if (this.loan !== undefined) this.#onClientEnd(this.loan)
    })
  }

  attempt(now: number = this.#start): void {
    const { outgoing } = this
    const { connections, uploadTimeout } = this.service
    this.#attemptedAt = now
    try {
      const loan = connections.borrow(this.#mayRepeat && !this.#repeated, outgoing.upgrade, now)
      const { connection } = loan
      this.loan = loan
      if (outgoing.framing !== null && outgoing.framing !== 0) {
        outgoing.body = this.substitutes.body?.open() ?? this.exchange.body(uploadTimeout)
        if (this.exchange.arrived < Number.POSITIVE_INFINITY)
          this.#uploadWatch = watchUpload(this.exchange, connection, this.service.pace)
      }
      connection.send(outgoing, this)
    } catch (error) {
      this.finish({ kind: 'bug', error })
    }
  }

  get answered(): boolean {
    return this.#client.answered
  }

  /** Aborts the attempt, and with it all watches of the client, unless the device may finish an upload. */
  #onClientEnd({ connection }: Loan): void {
    const { finishing, clock } = this.service
    const abandon = (): void => connection.abort(CLIENT_LEFT)
    if (finishing !== undefined && this.#isWholeUpload)
      this.#leaveFinishing = finishing.tryEnter(this.exchange, abandon)
    if (finishing === undefined || this.#leaveFinishing === undefined) {
      abandon()
      return
    }
    this.#finishing = clock.after(finishing.within, abandon)
    if (this.#backpressure === undefined) return
    // The rest of the response is read, and dropped.
    this.#backpressure.end()
    this.#backpressure = undefined
    connection.resume()
  }

  /** The client has left, and the device needs nothing more of it. */
  get #isWholeUpload(): boolean {
    const isStream = this.#extent === 'stream' || this.#leaveStreams !== undefined
    return this.exchange.outcome === 'aborted' && this.#uploaded && !isStream
  }

  sent(reused: boolean): void {
    if (!this.#mayRepeat) this.#begunToChange()
    this.exchange.attempts += 1
    this.exchange.reused = reused
    // A connection that was open has sent the head at once.
    if (this.outgoing.body === undefined)
      this.#whole(reused ? this.#attemptedAt : this.service.clock.monotonic())
  }

  uploaded(): void {
    this.#uploaded = true
    this.#whole(this.service.clock.monotonic())
  }

  #begunToChange(): void {
    if (this.#changes || isSafe(this.outgoing.method)) return
    this.#changes = true
    this.service.learner?.changing(1)
  }

  /** The whole request was sent. */
  #whole(now: number): void {
    const { learner } = this.service
    const { target, upgrade } = this.outgoing
    if (upgrade || this.#client.answered) return
    this.#sentAt = now
    if (learner === undefined) return
    // An earlier attempt, on a connection that broke, is over.
    if (this.#place !== undefined) learner.left(this.#place)
    learner.calm.target = target
    this.#place = learner.watches ? learner.sent(target, now) : undefined
  }

  crowded(): void {
    if (this.#sentAt === 0 || this.#place !== undefined) return
    this.#place = this.service.learner?.sent(this.outgoing.target, this.#sentAt, 1)
    if (this.#place !== undefined) this.#place.answered = this.#responded
  }

  /** Tells the learner of the head of the response, unless it came as fast as usual while the device had little to do. */
  #answered(now: number): void {
    const { learner } = this.service
    if (learner === undefined || this.#sentAt === 0) return
    if (this.#place === undefined && now - this.#sentAt <= FAST) {
      const { calm } = learner
      if (calm.answers === 0) calm.firstAt = now
      calm.answers += 1
      calm.lastAt = now
      return
    }
    this.crowded()
    if (this.#place !== undefined) learner.answered(this.#place, now)
  }

  inform(status: number, fields: Fields): void {
    const { response } = this.service.fields
    const projected = responseHead({ status, reason: '', fields, remembered: false }, this.exchange, response)
    this.#client.inform(status, [...projected.fields, ...limitFields(this.exchange)])
  }

  head(head: DeviceHead, now: number): void {
    const { exchange, service } = this
    const { connections, fields, breaker, events, longPaths, streamAfter } = service
    this.#responded = true
    this.#answered(now)
    const time = this.#sentAt === 0 ? 0 : now - this.#sentAt
    if (longPaths !== undefined && (longPaths.any || time > streamAfter))
      longPaths.answered(this.outgoing.target, time, streamAfter)
    exchange.deviceStatus = head.status
    exchange.tolerant = connections.tolerant
    // Most responses have a length, and are no streams.
    const extent = typeof head.framing === 'number' && head.isStream !== true ? 'counted' : extentOf(head)
    this.#extent = extent
    exchange.streamAt =
      extent === 'counted' ? 0 : extent === 'stream' ? now : streamStart(head, now, streamAfter)
    if (extent === 'stream' && service.streams?.allowed === true && !this.#becomeStream()) {
      breaker.succeeded()
      this.loan?.connection.abort(TOO_MANY_STREAMS)
      return
    }
    this.#begun = !this.#client.answered
    try {
      this.#client.begin(responseHead(head, exchange, fields.response))
    } catch (error) {
      // For example a status that HTTP/2 cannot carry. Only this response fails; the rules by which the device is read stay.
      this.loan?.connection.abort(error)
      return
    }
    if (!breaker.responds) breaker.succeeded()
    exchange.headAt = now
    events.responded(now - this.#start)
  }

  /** A long poll whose client gives up before it is answered is long, too. A short silence says nothing about the path. */
  #neverAnswered(): void {
    const { longPaths, streamAfter, clock } = this.service
    const time = clock.monotonic() - this.#sentAt
    if (this.#sentAt !== 0 && time > streamAfter) longPaths?.answered(this.outgoing.target, time, streamAfter)
  }

  malformed(deviation: Deviation): void {
    this.exchange.deviation = describeDeviation(deviation)
  }

  /**
   * A response that has lasted long becomes a stream and gives its place back, unless there are too many streams. That of an upload whose
   * client has left does not.
   */
  othersWait(): void {
    const { streams, streamAfter, clock } = this.service
    if (streams?.allowed !== true || this.#extent === 'counted' || this.#leaveStreams !== undefined) return
    if (this.#finishing !== undefined) return
    if (clock.monotonic() - this.exchange.headAt >= streamAfter) this.#becomeStream()
  }

  #becomeStream(): boolean {
    this.#leaveStreams = this.service.streams?.tryEnter(this.exchange.client.key)
    if (this.#leaveStreams === undefined) return false
    this.exchange.leavePlace?.()
    this.#backpressure?.judgeBy(this.#downloadPace())
    return true
  }

  /** A stream holds no place, so its reader is not judged for one. */
  #downloadPace(): Pace {
    const { downloadPace } = this.service
    return this.#leaveStreams === undefined ? downloadPace : { ...downloadPace, isCrowded: () => false }
  }

  get takesLarge(): boolean {
    return this.#client.takesLarge
  }

  data(chunk: Buffer): void {
    // `write` may have cut the exchange, because too much is queued for its client.
    if (this.#client.write(chunk) || this.loan === undefined) return
    this.#backpressure ??= new Backpressure(this.#client, this.loan.connection, this.#downloadPace())
    this.#backpressure.pause()
  }

  end(last?: Buffer): void {
    this.#client.end(last)
    this.finish(RELAYED)
  }

  /** True without a body, or with one that is buffered whole; false once the request was sent again. */
  get repeatsUnread(): boolean {
    const isKept = this.outgoing.body === undefined || this.substitutes.body?.repeatable === true
    return isKept && !this.#repeated
  }

  failed(error: unknown, loss: Loss): void {
    const client = this.#client
    if (!client.answered) {
      // The device closed the connection before it read the request.
      const stale = loss === 'stale' && failureOf(error) === 'connection_terminated'
      if (loss === 'unread' || (stale && this.#mayRepeat && !this.#repeated)) this.#repeat()
      else this.finish({ kind: 'failed', error, silent: loss !== 'begun' })
    } else if (client.ended || !this.#begun) this.finish({ kind: 'abandoned' })
    else {
      // The connection has no handler any more, so the `abort` that `cut` causes does nothing.
      client.cut()
      this.finish({ kind: 'broken', error })
    }
  }

  #repeat(): void {
    this.#repeated = true
    this.#sentAt = 0
    this.#uploaded = false
    this.#uploadWatch?.cancel()
    this.loan?.release(false)
    this.loan = undefined
    this.attempt(this.service.clock.monotonic())
  }

  /** Gives the connection back, then reports the end. Runs once: afterwards the connection has no handler. */
  protected finish(end: RoundTripEnd): void {
    const loan = this.loan
    this.loan = undefined
    this.#uploadWatch?.cancel()
    this.#finishing?.cancel()
    this.#leaveFinishing?.()
    this.#backpressure?.end()
    this.#leaveStreams?.()
    if (!this.#responded) this.#neverAnswered()
    if (this.#changes) this.service.learner?.changing(-1)
    if (this.#place !== undefined)
      this.service.learner?.left(this.#place, end.kind === 'failed' ? end.error : undefined)
    loan?.release(end.kind === 'relayed')
    this.#onEnd(end, this.exchange)
  }
}
