import { type OwnEndpoint, type Per, WINDOW_TYPES, type WindowType } from '../http/admission.ts'
import type { Exchange, Outcome } from '../http/exchange.ts'
import type { AuthFailure, Refusal } from '../http/refusal.ts'
import { shownPath } from '../http/request-path.ts'
import { nameOf } from './access-log.ts'

export const FLAGS = {
  withinLimit: 1,
  sharedWindow: 2,
  /** A trusted proxy reported the address of the client in `X-Forwarded-For`. */
  fromForwardedFor: 4,
  upgrade: 8,
  reused: 16,
  tolerant: 32,
  /** It counted in the window that all clients beyond `limits.max_keys` share. */
  overflowWindow: 64,
  /** No service of the device was chosen. */
  noService: 128,
} as const

/** The longest values that are kept, in characters. */
const LONGEST_PATH = 256
const LONGEST_METHOD = 32

/** The numbers of a request, in the order in which they are kept. Durations are in ms; 0 means that there is none. */
const NUMBER_NAMES = [
  'time', // when the request head was read (ms since the epoch)
  'duration',
  'status',
  'requestBytes',
  'responseBytes',
  'limit',
  'remaining',
  'closesIn',
  'lookup', // how long the gate waited for the shared store
  'waited', // how long it waited in queues
  'places', // how many requests could be at the device after that
  'sentAfter', // when the first attempt to send it to the device began: ms since `time`
  'headAfter', // when the head of the response came: ms since `time`
  'deviceStatus',
  'attempts',
  'flags', // of `FLAGS`
  'code', // the words of `Coded`
] as const

/**
 * The words of a request, in the order in which they are kept; empty means that there is none. The id is the first, to be found; the path
 * is the last, because a long one is cut.
 */
const WORD_NAMES = [
  'id',
  'client',
  'grant',
  'refusal', // its name in the access log
  'description', // the sentence that the client got
  'wouldRefuse',
  'failure',
  'route',
  'method',
  'path',
] as const

type NumberName = (typeof NUMBER_NAMES)[number]
type WordName = (typeof WORD_NAMES)[number]

/** What is remembered of a request. */
export type RequestFacts = Readonly<Record<Exclude<NumberName, 'code'>, number> & Record<WordName, string>> &
  Coded

/** Words that are kept as one number, because how often each occurs is bounded: most requests then have few other words. */
interface Coded {
  readonly kind: (typeof KINDS)[number]
  readonly endpoint: WindowType
  readonly per: Per
  readonly end: Outcome
  readonly version: (typeof VERSIONS)[number]
  /** `valid`, the reason why the token is not accepted, or `unavailable`; empty if no token was looked up. */
  readonly token: '' | 'valid' | 'unavailable' | AuthFailure
  readonly ownEndpoint: '' | OwnEndpoint
}

/** How many numbers `writeNumbers` writes. */
export const NUMBERS = NUMBER_NAMES.length

// Proof of the cast: the keys are all names.
const AT = Object.fromEntries(NUMBER_NAMES.map((name, index) => [name, index])) as Record<NumberName, number>

/** Writes the numbers of a request to `to`, from index `at`. @param wall when the exchange ended (ms since the epoch) */
export function writeNumbers(exchange: Exchange, wall: number, to: Float64Array, at: number): void {
  const { decision, client, head, start } = exchange
  let flags = decision.admitted ? FLAGS.withinLimit : 0
  if (decision.shared === true) flags |= FLAGS.sharedWindow
  if (decision.overflow === true) flags |= FLAGS.overflowWindow
  if (client.peerTrusted && head.survey.forwardedFor.length > 0) flags |= FLAGS.fromForwardedFor
  if (head.upgrade) flags |= FLAGS.upgrade
  if (exchange.reused) flags |= FLAGS.reused
  if (exchange.tolerant) flags |= FLAGS.tolerant
  if (exchange.route === undefined) flags |= FLAGS.noService
  to[at + AT.time] = wall - exchange.duration
  to[at + AT.duration] = exchange.duration
  to[at + AT.status] = exchange.status
  to[at + AT.requestBytes] = exchange.requestBytes
  to[at + AT.responseBytes] = exchange.responseBytes
  to[at + AT.limit] = decision.limit
  to[at + AT.remaining] = decision.remaining
  to[at + AT.closesIn] = decision.closesIn
  to[at + AT.lookup] = exchange.lookup
  to[at + AT.waited] = exchange.waited
  to[at + AT.places] = exchange.places
  to[at + AT.sentAfter] = exchange.sentAt === 0 ? 0 : exchange.sentAt - start
  to[at + AT.headAfter] = exchange.headAt === 0 ? 0 : exchange.headAt - start
  to[at + AT.deviceStatus] = exchange.deviceStatus
  to[at + AT.attempts] = exchange.attempts
  to[at + AT.flags] = flags
  to[at + AT.code] = codeOf(exchange)
}

const KINDS = ['refused', 'own-endpoint', 'forward'] as const
const OWNERS = ['client', 'grant', 'device', 'name'] as const
const ENDS = ['complete', 'aborted', 'cut'] as const
const VERSIONS = ['1.0', '1.1', '2'] as const
const TOKENS = ['', 'valid', 'unavailable', 'missing', 'malformed', 'unknown', 'expired', 'revoked'] as const
const OWN_ENDPOINTS = ['', 'token', 'revocation', 'login', 'logout', 'preflight'] as const

function codeOf({ kind, classified, endpoint, per, outcome, identity, head }: Exchange): number {
  const token = identity === undefined ? '' : identity.kind === 'refused' ? identity.cause : identity.kind
  return (
    KINDS.indexOf(kind) |
    (WINDOW_TYPES.indexOf(endpoint) << 2) |
    (OWNERS.indexOf(per) << 4) |
    (ENDS.indexOf(outcome ?? 'complete') << 6) |
    (VERSIONS.indexOf(head.version) << 8) |
    (TOKENS.indexOf(token) << 10) |
    (OWN_ENDPOINTS.indexOf(classified.ownEndpoint ?? '') << 13)
  )
}

/** The words of a request in the order of `WORD_NAMES`, one a line. They have neither the query nor a field nor the body. */
export function wordsOf(exchange: Exchange): string {
  const { requestId, client, grant, refusal, wouldRefuse, failure, cause, route, head } = exchange
  const path = (head.shown ?? shownPath(head)).slice(0, LONGEST_PATH)
  const unusual = unusualWords(refusal, wouldRefuse, failure, cause)
  return `${requestId}\n${client.address}\n${grant ?? ''}\n${unusual}\n${route ?? ''}\n${head.method.slice(0, LONGEST_METHOD)}\n${path}`
}

/** For most requests all four are empty, and for a flood all but the first: joining fewer strings takes less time. */
function unusualWords(
  refusal: Refusal | undefined,
  observed: Refusal | undefined,
  failure: string | undefined,
  cause: string,
): string {
  const name = refusal === undefined ? '' : nameOf(refusal)
  const description = refusal !== undefined && 'description' in refusal ? refusal.description : ''
  if (description === '' && observed === undefined && failure === undefined) return `${name}\n\n\n`
  return `${name}\n${description}\n${observed === undefined ? '' : nameOf(observed)}\n${failure ?? ''}${cause === '' ? '' : `: ${cause}`}`
}

/** The facts that `writeNumbers` and `wordsOf` wrote. */
export function readFacts(numbers: Float64Array, words: string): RequestFacts {
  const lines = words.split('\n')
  // A path of HTTP/2 may have line ends.
  const path = lines.splice(WORD_NAMES.length - 1).join('\n')
  const { code, ...figures } = named<NumberName, number>(NUMBER_NAMES, [...numbers], 0)
  const { method, ...others } = named<WordName, string>(WORD_NAMES, [...lines, path], '')
  return {
    ...figures,
    ...others,
    method: printable(method),
    path: printable(path),
    kind: KINDS[code & 3] ?? 'refused',
    endpoint: WINDOW_TYPES[(code >> 2) & 3] ?? 'api',
    per: OWNERS[(code >> 4) & 3] ?? 'client',
    end: ENDS[(code >> 6) & 3] ?? 'complete',
    version: VERSIONS[(code >> 8) & 3] ?? '1.1',
    token: TOKENS[(code >> 10) & 7] ?? '',
    ownEndpoint: OWN_ENDPOINTS[(code >> 13) & 7] ?? '',
  }
}

/** The values by their names. @param missing a value for a name without one: the end of long words is cut */
function named<Name extends string, T>(
  names: readonly Name[],
  values: readonly T[],
  missing: T,
): Record<Name, T> {
  // Proof of the cast: the keys are all names.
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? missing])) as Record<Name, T>
}

/** Visible ASCII, so that a request cannot send control sequences to a terminal. */
function printable(text: string): string {
  return text.replace(/[^ -~]/g, '?')
}
