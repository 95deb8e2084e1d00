import type { Classified, Client, LimitDecision } from '../http/admission.ts'
import type { Exchange, Outcome, RequestHead, ResponseHead } from '../http/exchange.ts'
import type { Fields } from '../http/fields.ts'
import type { LocalResponse } from '../http/refusal.ts'
import type { RequestBody } from './request-body.ts'

const UNCLASSIFIED: Classified = {
  endpoint: 'api',
  ownEndpoint: undefined,
  target: '',
  host: '',
  framing: null,
  fault: undefined,
  ambiguous: false,
  rules: undefined,
}
const NO_CLIENT: Client = { address: '', key: '', peerTrusted: false, hops: 0, admitted: true }
const UNCOUNTED: LimitDecision = { admitted: true, limit: 0, remaining: 0, closesIn: 0 }
const NO_FIELDS: Fields = []

type EndListener = () => void

/**
 * The base of every exchange. Only the listener creates exchanges, and it writes how they end for the client. The facts of the other rooms
 * are fields of the same object, with their initial values, so that a request needs no second object.
 */
export abstract class ListenerExchange implements Exchange {
  readonly head: RequestHead

  // Written by `gate/`.
  readonly classified: Exchange['classified'] = UNCLASSIFIED
  readonly client: Exchange['client'] = NO_CLIENT
  readonly requestId: Exchange['requestId'] = ''
  readonly endpoint: Exchange['endpoint'] = 'api'
  readonly per: Exchange['per'] = 'client'
  readonly decision: Exchange['decision'] = UNCOUNTED
  readonly resetAt: Exchange['resetAt'] = 0
  readonly ownFields: Exchange['ownFields'] = NO_FIELDS
  readonly identity: Exchange['identity'] = undefined
  readonly kind: Exchange['kind'] = 'refused'
  readonly grant: Exchange['grant'] = undefined
  readonly scope: Exchange['scope'] = undefined
  readonly confined: Exchange['confined'] = false
  readonly signedIn: Exchange['signedIn'] = false
  readonly refusal: Exchange['refusal'] = undefined
  readonly wouldRefuse: Exchange['wouldRefuse'] = undefined
  readonly endedFor: Exchange['endedFor'] = undefined
  readonly start: Exchange['start'] = 0
  readonly lookup: Exchange['lookup'] = 0
  readonly duration: Exchange['duration'] = 0
  readonly recorder: Exchange['recorder'] = undefined
  readonly newer: Exchange['newer'] = undefined
  readonly older: Exchange['older'] = undefined

  // Written by `forward/`.
  readonly route: Exchange['route'] = undefined
  readonly waited: Exchange['waited'] = 0
  readonly places: Exchange['places'] = 0
  readonly othersWait: Exchange['othersWait'] = undefined
  readonly leavePlace: Exchange['leavePlace'] = undefined
  readonly abandon: Exchange['abandon'] = undefined
  readonly listener: Exchange['listener'] = undefined
  readonly attempts: Exchange['attempts'] = 0
  readonly reused: Exchange['reused'] = false
  readonly sentAt: Exchange['sentAt'] = 0
  readonly headAt: Exchange['headAt'] = 0
  readonly streamAt: Exchange['streamAt'] = 0
  readonly idle: Exchange['idle'] = false
  readonly deviceStatus: Exchange['deviceStatus'] = 0
  readonly tolerant: Exchange['tolerant'] = false
  readonly deviation: Exchange['deviation'] = ''
  readonly failure: Exchange['failure'] = undefined
  readonly cause: Exchange['cause'] = ''

  // Written by `listen/`.
  memory: Exchange['memory'] = undefined
  overMemory = false
  status = 0
  outcome: Exchange['outcome'] = undefined
  requestBytes = 0
  responseBytes = 0
  #onEnd: EndListener | EndListener[] | undefined = undefined
  #onDrain: (() => void) | undefined = undefined
  /** Undefined if the request has no body, and over HTTP/2 until the body is read. */
  protected requestBody: RequestBody | undefined

  constructor(head: RequestHead, body?: RequestBody) {
    this.head = head
    this.requestBody = body
  }

  abstract readonly answered: boolean
  abstract body(stallTimeout: number): AsyncIterable<Buffer>
  abstract respond(response: LocalResponse, close?: boolean): void
  abstract inform(status: number, fields: Fields): void
  abstract begin(head: ResponseHead): void
  abstract write(chunk: Buffer): boolean
  abstract readonly takesLarge: boolean
  abstract end(lastChunk?: Buffer): void
  abstract cut(): void

  get unread(): boolean {
    return this.requestBody?.unread === true
  }

  get arrived(): number {
    return this.requestBody?.arrived ?? Number.POSITIVE_INFINITY
  }

  get broken(): boolean {
    return this.requestBody?.broken === true
  }

  async arrival(stallTimeout: number): Promise<void> {
    this.body(stallTimeout)
    await this.requestBody?.arrival()
  }

  onBroken(listener: () => void): void {
    this.requestBody?.onBroken(listener)
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener
  }

  /** Call this when the queued bytes of the response have drained. */
  drained(): void {
    this.#onDrain?.()
  }

  get ended(): boolean {
    return this.outcome !== undefined
  }

  onEnd(listener: EndListener): void {
    if (this.outcome !== undefined) listener()
    else if (this.#onEnd === undefined) this.#onEnd = listener
    else if (Array.isArray(this.#onEnd)) this.#onEnd.push(listener)
    else this.#onEnd = [this.#onEnd, listener]
  }

  /** Ends the exchange: drops the body, records the exchange and calls the listeners. Only the first call has an effect. */
  settle(outcome: Outcome): void {
    if (this.outcome !== undefined) return
    if (this.requestBody !== undefined) {
      this.requestBody.discard()
      this.requestBytes = this.requestBody.bytes
    }
    this.outcome = outcome
    this.recorder?.(this)
    const listeners = this.#onEnd
    this.#onEnd = undefined
    if (typeof listeners === 'function') listeners()
    else if (listeners !== undefined) for (const listener of listeners) listener()
  }
}
