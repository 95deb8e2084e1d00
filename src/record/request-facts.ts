import type { Endpoint, OwnEndpoint, Per } from '../http/admission.ts'
import type { Exchange, Outcome } from '../http/exchange.ts'
import type { AuthFailure, Refusal } from '../http/refusal.ts'
import { shownPath } from '../http/request-path.ts'
import { nameOf } from './access-log.ts'

/** What is remembered of a request, as numbers and words. An empty word and a 0 mean that there is none. Durations are in ms. */
export interface RequestFacts {
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
  /** How long it waited in queues. */
  readonly waited: number
  /** When the first attempt to send it to the device began, and when the head of the response came: ms since `time`. */
  readonly sentAfter: number
  readonly headAfter: number
  readonly deviceStatus: number
  readonly attempts: number
  readonly flags: number
  readonly id: string
  readonly kind: 'refused' | 'own-endpoint' | 'forward'
  readonly endpoint: Endpoint
  readonly client: string
  readonly ownEndpoint: '' | OwnEndpoint
  readonly per: Per
  /** `valid`, the reason why the token is not accepted, or `unavailable`; empty if no token was looked up. */
  readonly token: '' | 'valid' | 'unavailable' | AuthFailure
  readonly grant: string
  /** The name of the refusal in the access log. */
  readonly refusal: string
  /** The sentence of the refusal that the client got. */
  readonly description: string
  readonly wouldRefuse: string
  readonly failure: string
  readonly end: Outcome
  readonly version: string
  readonly route: string
  readonly method: string
  readonly path: string
}

/** The bits of `RequestFacts.flags`. */
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

/** The order in which numbers are kept. */
const NUMBER_NAMES = [
  'time',
  'duration',
  'status',
  'requestBytes',
  'responseBytes',
  'limit',
  'remaining',
  'closesIn',
  'lookup',
  'waited',
  'sentAfter',
  'headAfter',
  'deviceStatus',
  'attempts',
  'flags',
  'code',
] as const satisfies readonly (keyof RequestFacts | 'code')[]

/** The order in which words are kept. The id is the first, to be found; the path is the last, because a long one is cut. */
const WORD_NAMES = [
  'id',
  'client',
  'grant',
  'refusal',
  'description',
  'wouldRefuse',
  'failure',
  'route',
  'method',
  'path',
] as const satisfies readonly (keyof RequestFacts)[]

type NumberName = (typeof NUMBER_NAMES)[number]
type WordName = (typeof WORD_NAMES)[number]

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
  to[at + AT.sentAfter] = exchange.sentAt === 0 ? 0 : exchange.sentAt - start
  to[at + AT.headAfter] = exchange.headAt === 0 ? 0 : exchange.headAt - start
  to[at + AT.deviceStatus] = exchange.deviceStatus
  to[at + AT.attempts] = exchange.attempts
  to[at + AT.flags] = flags
  to[at + AT.code] = codeOf(exchange)
}

/** How often each of these words occurs is bounded, so they are kept as one number: most requests then have few words. */
const KINDS = ['refused', 'own-endpoint', 'forward'] as const
const ENDPOINTS = ['api', 'oauth'] as const
const OWNERS = ['client', 'grant', 'device'] as const
const ENDS = ['complete', 'aborted', 'cut'] as const
const VERSIONS = ['1.0', '1.1', '2'] as const
const TOKENS = ['', 'valid', 'unavailable', 'missing', 'malformed', 'unknown', 'expired', 'revoked'] as const
const OWN_ENDPOINTS = ['', 'token', 'revocation'] as const

function codeOf({ kind, classified, per, outcome, identity, head }: Exchange): number {
  const token = identity === undefined ? '' : identity.kind === 'refused' ? identity.cause : identity.kind
  return (
    KINDS.indexOf(kind) |
    (ENDPOINTS.indexOf(classified.endpoint) << 2) |
    (OWNERS.indexOf(per) << 3) |
    (ENDS.indexOf(outcome ?? 'complete') << 5) |
    (VERSIONS.indexOf(head.version) << 7) |
    (TOKENS.indexOf(token) << 9) |
    (OWN_ENDPOINTS.indexOf(classified.ownEndpoint ?? '') << 12)
  )
}

/** The words of a request in the order of `WORD_NAMES`, one a line. They have neither the query nor a field nor the body. */
export function wordsOf({
  requestId,
  client,
  grant,
  refusal,
  wouldRefuse,
  failure,
  route,
  head,
}: Exchange): string {
  const path = (head.shown ?? shownPath(head)).slice(0, LONGEST_PATH)
  const unusual = unusualWords(refusal, wouldRefuse, failure)
  return `${requestId}\n${client.address}\n${grant ?? ''}\n${unusual}\n${route ?? ''}\n${head.method.slice(0, LONGEST_METHOD)}\n${path}`
}

/** For most requests all four are empty, and for a flood all but the first: joining fewer strings takes less time. */
function unusualWords(
  refusal: Refusal | undefined,
  observed: Refusal | undefined,
  failure: string | undefined,
): string {
  const name = refusal === undefined ? '' : nameOf(refusal)
  const description = refusal !== undefined && 'description' in refusal ? refusal.description : ''
  if (description === '' && observed === undefined && failure === undefined) return `${name}\n\n\n`
  return `${name}\n${description}\n${observed === undefined ? '' : nameOf(observed)}\n${failure ?? ''}`
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
    endpoint: ENDPOINTS[(code >> 2) & 1] ?? 'api',
    per: OWNERS[(code >> 3) & 3] ?? 'client',
    end: ENDS[(code >> 5) & 3] ?? 'complete',
    version: VERSIONS[(code >> 7) & 3] ?? '1.1',
    token: TOKENS[(code >> 9) & 7] ?? '',
    ownEndpoint: OWN_ENDPOINTS[(code >> 12) & 3] ?? '',
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
