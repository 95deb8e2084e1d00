import { STATUS_CODES } from 'node:http'
import type { ForwardListener, Upstream } from '../forward/upstream.ts'
import type { Admission, OwnEndpoint, Refused } from '../http/admission.ts'
import type { Exchange, ExchangeRecord, Outcome, UpgradeExchange } from '../http/exchange.ts'
import { fieldLines } from '../http/fields.ts'
import type { Refusal } from '../http/refusal.ts'
import type { Reply } from '../http/reply.ts'
import type { OwnEndpointHandler } from '../oauth/token-endpoint.ts'
import type { Clock } from '../system/clock.ts'
import type { Admit } from './admit.ts'
import { LiveExchange, type LiveExchanges } from './live-exchanges.ts'
import { refusalReply, type StatusCodes } from './refusal-reply.ts'

export interface PassageDependencies {
  readonly admit: Admit
  /** The sidecar's own endpoints. */
  readonly ownEndpoints: Readonly<Record<OwnEndpoint, OwnEndpointHandler>>
  readonly upstream: Upstream
  readonly live: LiveExchanges
  readonly clock: Clock
  readonly refusalSettings: () => { readonly statusCodes: StatusCodes; readonly realm: string }
  readonly record: (record: ExchangeRecord) => void
  /** Called with a refusal that has no record: the bytes were no valid request, or the gate failed. */
  readonly onUnrecordedRefusal: (refusal: Refusal) => void
  /** Called with the error of a bug, for the operator. The client gets `server_error`. */
  readonly onBug: (error: unknown) => void
}

/** Handles the requests of a listener: each is refused, served by an own endpoint, or forwarded, and then recorded. */
export interface Passage {
  request(exchange: Exchange): void
  upgrade(exchange: UpgradeExchange): void
  /** The complete HTTP/1 response for bytes that are not a valid request (C20). Counts it: call it once per response. */
  refusalMessage(refusal: Refusal): string
}

/** An unread request body up to this size (bytes) is drained to keep the connection; a larger one closes it. */
const DRAINED_BODY = 8 * 1024

export function createPassage(deps: PassageDependencies): Passage {
  const { admit, ownEndpoints, upstream } = deps

  function pass<E extends Exchange>(exchange: E, forward: ForwardBy<E>): void {
    const start = deps.clock.monotonic()
    const admission = admitted(exchange)
    if (admission instanceof Promise) void passLater(exchange, forward, admission, start)
    else if (admission !== undefined) {
      follow(new RequestPassage(deps, exchange, admission, start, 0), exchange, admission, forward)
    }
  }

  /** Undefined if the gate throws an error; the exchange then already has its response. */
  function admitted(exchange: Exchange): ReturnType<Admit> | undefined {
    try {
      return admit(exchange.head)
    } catch (error) {
      return gateFailed(exchange, error)
    }
  }

  /** While the lookup is pending, the client may leave, and the grant may be revoked after the lookup has read it. */
  async function passLater<E extends Exchange>(
    exchange: E,
    forward: ForwardBy<E>,
    asked: Promise<Admission>,
    start: number,
  ): Promise<void> {
    const revoked = deps.live.watchRevoked()
    const admission = await asked.catch((error: unknown) => gateFailed(exchange, error))
    revoked.close()
    if (admission === undefined) return
    const lookup = deps.clock.monotonic() - start
    const passage = new RequestPassage(deps, exchange, admission, start, lookup)
    if (passage.grant !== undefined && revoked.has(passage.grant)) passage.revoke()
    if (!exchange.answered) follow(passage, exchange, admission, forward)
  }

  function follow<E extends Exchange>(
    passage: RequestPassage,
    exchange: E,
    admission: Admission,
    forward: ForwardBy<E>,
  ): void {
    if (admission.kind === 'refused') passage.refuse(admission.refusal, admission.close)
    else if (admission.kind === 'forward') {
      try {
        forward(admission, exchange, passage)
      } catch (bug) {
        passage.onBug(bug)
      }
    } else serveOwnEndpoint(admission, exchange, passage).catch((bug: unknown) => passage.onBug(bug))
  }

  /** Responds to a request on which the gate failed with a bug. It has no admission, so it is only counted. */
  function gateFailed(exchange: Exchange, error: unknown): undefined {
    const refusal: Refusal = { kind: 'server-error' }
    deps.onBug(error)
    deps.onUnrecordedRefusal(refusal)
    exchange.reply(refusalReply(refusal, deps.refusalSettings()), { close: true })
  }

  async function serveOwnEndpoint(
    admission: OwnAdmission,
    exchange: Exchange,
    passage: RequestPassage,
  ): Promise<void> {
    const result = await ownEndpoints[admission.ownEndpoint](admission, exchange)
    if (result.kind === 'refused') passage.refuse(result.refusal, result.close)
    else {
      passage.issuedTo = result.grant
      exchange.reply(withOwnFields(result.reply, admission))
    }
  }

  return {
    request: (exchange) => pass(exchange, upstream.forward),
    upgrade: (exchange) => pass(exchange, upstream.upgrade),
    refusalMessage(refusal) {
      deps.onUnrecordedRefusal(refusal)
      const { status, fields, body } = refusalReply(refusal, deps.refusalSettings())
      const lines = fieldLines([...fields, 'Connection', 'close'])
      return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`
    },
  }
}

/** One request from its admission to its end. */
class RequestPassage extends LiveExchange implements ForwardListener {
  readonly grant: string | undefined
  /** The grant of the tokens in the response. */
  issuedTo: string | undefined = undefined
  readonly #deps: PassageDependencies
  readonly #exchange: Exchange
  readonly #admission: Admission
  readonly #start: number
  readonly #lookup: number
  #refusal: Refusal | undefined

  constructor(
    deps: PassageDependencies,
    exchange: Exchange,
    admission: Admission,
    start: number,
    lookup: number,
  ) {
    super()
    this.#deps = deps
    this.#exchange = exchange
    this.#admission = admission
    this.#start = start
    this.#lookup = lookup
    this.grant = admission.kind === 'forward' ? admission.grant : undefined
    if (this.grant !== undefined) deps.live.add(this)
    exchange.onEnd((outcome) => this.#record(outcome))
  }

  /** Refuses a request whose response has not begun, as if it arrived now. Cuts a response that has begun. */
  revoke(): void {
    if (this.#exchange.answered) this.#exchange.cut()
    else this.refuse({ kind: 'unauthorized', cause: 'revoked' }, false)
  }

  refuse(refusal: Refusal, close: boolean): void {
    const exchange = this.#exchange
    if (exchange.answered) return
    this.#refusal = refusal
    const reply = refusalReply(refusal, this.#deps.refusalSettings())
    exchange.reply(withOwnFields(reply, this.#admission), {
      close: close || leavesBody(this.#admission, exchange),
    })
  }

  ended(refusal: Refusal | undefined): void {
    if (refusal !== undefined) this.refuse(refusal, false)
  }

  onBug(bug: unknown): void {
    this.#deps.onBug(bug)
    if (this.#exchange.answered) this.#exchange.cut()
    else this.refuse({ kind: 'server-error' }, true)
  }

  #record(outcome: Outcome): void {
    if (this.grant !== undefined) this.#deps.live.delete(this)
    this.#deps.record({
      head: this.#exchange.head,
      admission: this.#admission,
      grant: this.grant ?? this.issuedTo,
      refusal: this.#refusal,
      outcome,
      duration: this.#deps.clock.monotonic() - this.#start,
      start: this.#start,
      lookup: this.#lookup,
    })
  }
}

/** Adds the fields that each of the sidecar's own responses carries: the rate-limit fields (C16) and the request id (C22). */
function withOwnFields(reply: Reply, { limitFields, requestId }: Admission): Reply {
  return { ...reply, fields: [...reply.fields, ...limitFields, 'X-Request-Id', requestId] }
}

type ForwardBy<E> = (admission: Forwardable, exchange: E, listener: ForwardListener) => void

type Forwardable = Extract<Admission, { kind: 'forward' }>
type OwnAdmission = Extract<Admission, { kind: 'own-endpoint' }>

/** Whether the unread request body may be larger than the sidecar drains. */
function leavesBody({ framing }: Pick<Refused, 'framing'>, exchange: Exchange): boolean {
  if (framing === null || !exchange.unread) return false
  return framing === 'chunked' || framing > DRAINED_BODY
}
