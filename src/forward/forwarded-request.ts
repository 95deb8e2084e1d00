import type { Breaker } from '../device/breaker.ts'
import type { DeviceHead } from '../device/response-handler.ts'
import type { Forward } from '../http/admission.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { Clock } from '../system/clock.ts'
import type { BufferedBody } from './buffered-body.ts'
import { type ClientFields, type ResponseFieldSettings, responseFields } from './response-fields.ts'
import type { RoundTripRequest } from './round-trip.ts'

/** What all requests to one device share for their responses. */
export interface ResponseDependencies {
  readonly response: () => ResponseFieldSettings
  readonly breaker: Breaker
  readonly clock: Clock
  readonly events: {
    /** @param duration time (ms) from sending the request to the head of the device's response */
    readonly responded: (duration: number) => void
  }
}

type OnEnd = RoundTripRequest['onEnd']

/** A request to the device. It measures the response time from its creation to the head of the response. */
export class ForwardedRequest implements RoundTripRequest {
  readonly admission: Forward
  readonly exchange: Exchange
  readonly fields: readonly string[]
  readonly body: BufferedBody | undefined
  readonly onEnd: OnEnd
  readonly #deps: ResponseDependencies
  readonly #start: number

  constructor(
    deps: ResponseDependencies,
    admission: Forward,
    exchange: Exchange,
    fields: readonly string[],
    body: BufferedBody | undefined,
    onEnd: OnEnd,
  ) {
    this.#deps = deps
    this.admission = admission
    this.exchange = exchange
    this.fields = fields
    this.body = body
    this.onEnd = onEnd
    this.#start = deps.clock.monotonic()
    // A request with the sidecar's own login may be sent again.
    if (admission.trace.sentAt === 0) admission.trace.sentAt = this.#start
  }

  get limitFields(): Fields {
    return this.admission.limitFields
  }

  project(head: DeviceHead): ClientFields {
    return responseFields(head, this.exchange.head, this.admission, this.#deps.response())
  }

  onHead(): void {
    const { breaker, clock, events } = this.#deps
    breaker.succeeded()
    const now = clock.monotonic()
    this.admission.trace.headAt = now
    events.responded(now - this.#start)
  }
}
