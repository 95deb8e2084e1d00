import type { GateFacts, OwnEndpoint, Per, WindowType } from '../http/admission.ts'
import type { Exchange, Outcome } from '../http/exchange.ts'
import type { AuthFailure } from '../http/refusal.ts'
import { shownPath } from '../http/request-path.ts'
import { nameOf } from './access-log.ts'

/** The longest values that are kept, in characters. */
const LONGEST_PATH = 256
const LONGEST_METHOD = 32

/** What is remembered of a request. Durations are in ms. 0 and the empty text mean that there is none. */
export interface RequestFacts {
  readonly id: string
  /** When the request head was read (ms since the epoch). */
  readonly time: number
  readonly duration: number
  readonly status: number
  readonly requestBytes: number
  readonly responseBytes: number
  readonly limit: number
  readonly remaining: number
  readonly closesIn: number
  /** How long the gate waited for the shared store. */
  readonly lookup: number
  /** How long it waited in queues, and how many requests could be at the device after that. */
  readonly waited: number
  readonly places: number
  /** When the first attempt to send it to the device began, and when the head of the response came: ms since `time`. */
  readonly sentAfter: number
  readonly headAfter: number
  readonly deviceStatus: number
  readonly attempts: number
  readonly kind: GateFacts['kind']
  readonly endpoint: WindowType
  readonly per: Per
  readonly end: Outcome
  readonly version: '1.0' | '1.1' | '2'
  readonly ownEndpoint: '' | OwnEndpoint
  /** `valid`, the reason why the token is not accepted, or `unavailable`; empty if no token was looked up. */
  readonly token: '' | 'valid' | 'unavailable' | AuthFailure
  readonly withinLimit: boolean
  readonly sharedWindow: boolean
  /** It counted in the window that all clients beyond `limits.max_keys` share. */
  readonly overflowWindow: boolean
  /** A trusted proxy reported the address of the client in `X-Forwarded-For`. */
  readonly fromForwardedFor: boolean
  readonly upgrade: boolean
  readonly reused: boolean
  readonly tolerant: boolean
  /** The path of a service of `upstream.routes`, empty for the main service; null: no service of the device was chosen. */
  readonly route: string | null
  readonly client: string
  readonly grant: string
  /** Its name in the access log, and the sentence that the client got. */
  readonly refusal: string
  readonly description: string
  readonly wouldRefuse: string
  readonly failure: string
  readonly method: string
  readonly path: string
}

/** @param wall when the exchange ended (ms since the epoch) */
export function factsOf(exchange: Exchange, wall: number): RequestFacts {
  const { decision, client, head, start, refusal, wouldRefuse, failure = '', cause, identity } = exchange
  return {
    id: exchange.requestId,
    time: wall - exchange.duration,
    duration: exchange.duration,
    status: exchange.status,
    requestBytes: exchange.requestBytes,
    responseBytes: exchange.responseBytes,
    limit: decision.limit,
    remaining: decision.remaining,
    closesIn: decision.closesIn,
    lookup: exchange.lookup,
    waited: exchange.waited,
    places: exchange.places,
    sentAfter: exchange.sentAt === 0 ? 0 : exchange.sentAt - start,
    headAfter: exchange.headAt === 0 ? 0 : exchange.headAt - start,
    deviceStatus: exchange.deviceStatus,
    attempts: exchange.attempts,
    kind: exchange.kind,
    endpoint: exchange.endpoint,
    per: exchange.per,
    end: exchange.outcome ?? 'complete',
    version: head.version,
    ownEndpoint: exchange.classified.ownEndpoint ?? '',
    token: identity?.kind === 'refused' ? identity.cause : (identity?.kind ?? ''),
    withinLimit: decision.admitted,
    sharedWindow: decision.shared === true,
    overflowWindow: decision.overflow === true,
    fromForwardedFor: client.peerTrusted && head.survey.forwardedFor.length > 0,
    upgrade: head.upgrade,
    reused: exchange.reused,
    tolerant: exchange.tolerant,
    route: exchange.route ?? null,
    client: client.address,
    grant: exchange.grant ?? '',
    refusal: refusal === undefined ? '' : nameOf(refusal),
    description: refusal !== undefined && 'description' in refusal ? refusal.description : '',
    wouldRefuse: wouldRefuse === undefined ? '' : nameOf(wouldRefuse),
    failure: cause === '' ? failure : `${failure}: ${cause}`,
    method: head.method.slice(0, LONGEST_METHOD),
    path: (head.shown ?? shownPath(head)).slice(0, LONGEST_PATH),
  }
}
