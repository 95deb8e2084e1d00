import { hash } from 'node:crypto'
import type { Socket } from 'node:net'
import { requestFields } from '../../src/forward/request-fields.ts'
import { responseHead } from '../../src/forward/response-fields.ts'
import { createLiveExchanges, type LiveExchanges } from '../../src/gate/live-exchanges.ts'
import { requestIdOf } from '../../src/gate/request-id.ts'
import type { Exchange, Forward, RequestHead } from '../../src/http/exchange.ts'
import type { Fields } from '../../src/http/fields.ts'
import { LIMIT_FIELD_NAMES } from '../../src/http/limit-fields.ts'
import { writeRequestHead } from '../../src/http1/request-writer.ts'
import type { AccessLog } from '../../src/record/access-log.ts'
import { createMetricRegistry } from '../../src/record/metric-registry.ts'
import { createTally } from '../../src/record/tally.ts'
import { type BoundedQueue, createBoundedQueue, type Leave } from '../../src/system/bounded-queue.ts'
import { systemClock } from '../../src/system/clock.ts'
import { writeSoon } from '../../src/system/write-soon.ts'
import { PLAIN } from '../../test/support/admitted.ts'
import { BareExchange } from '../../test/support/exchange.ts'
import { PEER_TOKEN } from '../peers/peer.ts'
import type { Capability } from './capabilities.ts'
import { DeviceLink } from './device-link.ts'
import type { DeviceResponse, FloorExchange } from './floor-exchange.ts'
import { fieldsForClient, fieldsForDevice } from './lines.ts'

/** The largest load has this many requests in flight. */
const QUEUE = { inside: 256, waiting: 256, maxWait: 5_000 }

/** More than any run sends. */
const LIMIT = 1_000_000_000
const RESET = ['X-RateLimit-Reset', '1790000000'] as const
/** The last name waits for its value. */
const LIMIT_FIELDS = ['X-RateLimit-Limit', String(LIMIT), ...RESET, 'X-RateLimit-Remaining'] as const

const ORIGIN = 'http://127.0.0.1'
const RESPONSE_SETTINGS = {
  origin: ORIGIN,
  host: undefined,
  names: [],
  rewrite: false,
  replaced: LIMIT_FIELD_NAMES,
  passes: undefined,
  added: undefined,
}
const BEARER = 'Bearer '.length

/**
 * The core work of a sidecar (tokens, a count of requests, connections to the device) and the capabilities that are enabled. Requests
 * have no body, and each response arrives in one piece.
 */
export class Floor {
  readonly #capabilities: ReadonlySet<Capability>
  readonly #devicePort: number
  readonly #spare: DeviceLink[] = []
  readonly #tokens = new Map([[hash('sha256', PEER_TOKEN, 'base64url'), 'floor']])
  readonly #batch: boolean
  readonly #timed: boolean
  readonly #newRequestId: (() => string) | undefined
  readonly #queue: BoundedQueue | undefined
  readonly #live: LiveExchanges<FloorExchange> | undefined
  readonly #metrics: Count | undefined
  readonly #log: AccessLog | undefined
  #counted = 0
  /** Whether heads are parsed into fields, not copied as lines. */
  readonly strict: boolean

  /** @param log for access lines, if that capability is enabled */
  constructor(capabilities: ReadonlySet<Capability>, devicePort: number, log: AccessLog | undefined) {
    this.#capabilities = capabilities
    this.#devicePort = devicePort
    this.#batch = this.has('batch')
    this.strict = this.has('strict')
    this.#timed = this.has('metrics')
    this.#newRequestId = this.has('policy') ? () => requestIdOf([], false) : undefined
    this.#queue = this.has('queue') ? createBoundedQueue(systemClock, QUEUE) : undefined
    this.#live = this.has('live') ? createLiveExchanges<FloorExchange>() : undefined
    this.#metrics = this.has('metrics') ? createFloorMetrics() : undefined
    this.#log = log
  }

  has(capability: Capability): boolean {
    return this.#capabilities.has(capability)
  }

  /** Checks the token and forwards the exchange to the device. */
  pass(exchange: FloorExchange): void {
    if (!this.#isAdmitted(exchange.authorization)) {
      exchange.side.cut()
      return
    }
    if (this.#timed) exchange.started = systemClock.monotonic()
    this.#live?.add(exchange)
    if (this.#queue !== undefined) exchange.leave = this.#enter(this.#queue)
    this.#forward(exchange)
  }

  /** Returns a link that carries no exchange any more. */
  free(link: DeviceLink): void {
    this.#spare.push(link)
  }

  relayText(exchange: FloorExchange, text: string): void {
    exchange.side.relay(text)
    this.#finish(exchange, Number(text.slice(9, 12)), text.length)
  }

  onResponse(exchange: FloorExchange, response: DeviceResponse): void {
    const { status, reason, body } = response
    const { request } = exchange
    const fields =
      request === undefined
        ? fieldsForClient(response.fields, this.limitFields())
        : [
            ...responseHead({ ...response, remembered: false }, request, RESPONSE_SETTINGS).fields,
            ...this.limitFields(),
          ]
    exchange.side.respond({ status, reason, fields, body }, exchange)
    this.#finish(exchange, status, body.length)
  }

  write(socket: Socket, text: string): void {
    if (this.#batch) writeSoon(socket, text)
    else socket.write(text, 'latin1')
  }

  limitFields(): Fields {
    return [...LIMIT_FIELDS, String(LIMIT - this.#counted)]
  }

  /** Hashes and looks up the token, and counts the request. */
  #isAdmitted(authorization: string): boolean {
    this.#counted += 1
    return this.#tokens.has(hash('sha256', authorization.slice(BEARER), 'base64url'))
  }

  #enter(queue: BoundedQueue): Leave {
    const leave = queue.tryEnter()
    if (leave === undefined) throw new Error('more requests in flight than a load has')
    return leave
  }

  #forward(exchange: FloorExchange): void {
    const link = this.#spare.pop() ?? new DeviceLink(this, this.#devicePort)
    link.send(exchange, this.strict ? this.#headFor(exchange) : exchange.text)
  }

  /** The head for the device of a request that was parsed into fields. */
  #headFor(exchange: FloorExchange): string {
    const { head } = exchange
    if (head === undefined) throw new Error('request without a head')
    const { method, target } = head
    const fields = this.#fieldsFor(exchange, head)
    const text = writeRequestHead({ method, target, fields, framing: null }, ORIGIN, true)
    if (text === undefined) throw new Error('head that cannot be written')
    return text
  }

  #fieldsFor(exchange: FloorExchange, head: RequestHead): string[] {
    if (this.#newRequestId === undefined) return fieldsForDevice(head.fields, head.authority)
    exchange.requestId = this.#newRequestId()
    exchange.request = requestOf(head, exchange.requestId)
    return requestFields(exchange.request, null, PLAIN)
  }

  /** @param size of the body (bytes), approximate where lines are copied */
  #finish(exchange: FloorExchange, status: number, size: number): void {
    exchange.leave?.()
    this.#live?.delete(exchange)
    const { head, requestId } = exchange
    if (!this.#timed || head === undefined) return
    const duration = systemClock.monotonic() - exchange.started
    this.#metrics?.(head.method, status, size, duration)
    const ended = { outcome: 'complete' as const, status, responseBytes: size, duration }
    this.#log?.write(Object.assign(exchange.request ?? requestOf(head, requestId), ended), systemClock.wall())
  }
}

function requestOf(head: RequestHead, requestId: string): Forward {
  const address = head.peer
  const request = Object.assign(new BareExchange(head), {
    requestId,
    kind: 'forward' as const,
    grant: 'floor',
    client: { address, key: address, peerTrusted: false, hops: 0 },
  })
  const host = head.authority ?? head.survey.host[0] ?? ''
  const classified = { ...request.classified, target: head.target, host }
  const exchange: Exchange = Object.assign(request, { classified })
  return exchange as Forward // the type reserves this for the gate, which the floor does not have
}

/** @param size of the body (bytes) @param duration ms */
type Count = (method: string, status: number, size: number, duration: number) => void

/** Counts as Postern does: a tally of requests, their bytes, and two durations. */
function createFloorMetrics(): Count {
  const { counter, histogram } = createMetricRegistry()
  const labels = ['endpoint', 'method', 'code']
  const count = createTally(counter('floor_requests_total', 'Requests.', labels), 'api')
  const whole = histogram('floor_request_duration_seconds', 'Of requests.')()
  const atDevice = histogram('floor_upstream_duration_seconds', 'At the device.')()
  const bytes = { response: 0 }
  return (method, status, size, duration) => {
    count(method, status)
    atDevice.observe(duration / 1000)
    whole.observe(duration / 1000)
    bytes.response += size
  }
}
