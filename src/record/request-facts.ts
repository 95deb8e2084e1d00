import type { Endpoint } from '../http/admission.ts'
import type { DecidedRecord, Outcome } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import { pathOf } from '../http/request-path.ts'
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
  /** When it was sent to the device, and when the head of the response came: ms since `time`. */
  readonly sentAfter: number
  readonly headAfter: number
  readonly deviceStatus: number
  readonly attempts: number
  readonly flags: number
  readonly id: string
  readonly kind: 'refused' | 'own-endpoint' | 'forward'
  readonly endpoint: Endpoint
  readonly client: string
  readonly per: 'client' | 'grant' | 'device'
  /** `valid`, the reason why the token is not accepted, or `unavailable`. */
  readonly token: string
  readonly grant: string
  /** The name of the refusal in the access log. */
  readonly refusal: string
  /** The sentence of the refusal that the client got. */
  readonly description: string
  readonly wouldRefuse: string
  readonly failure: string
  readonly end: Outcome['end']
  readonly version: string
  readonly route: string
  readonly method: string
  readonly path: string
}

/** The bits of `RequestFacts.flags`. */
export const FLAGS = {
  withinLimit: 1,
  sharedWindow: 2,
  /** A trusted proxy named the client. */
  named: 4,
  upgrade: 8,
  reused: 16,
  tolerant: 32,
} as const

/** The longest values that are kept, in characters. */
const LONGEST_PATH = 256
const LONGEST_METHOD = 32

/** How many numbers `writeNumbers` writes. */
export const NUMBERS = 16

/** Writes the numbers of a request to `to`, from index `at`. @param wall when the exchange ended (ms since the epoch) */
export function writeNumbers(record: DecidedRecord, wall: number, to: Float64Array, at: number): void {
  const { admission, outcome, head, start, duration } = record
  const { decision, peerTrusted } = admission
  const trace = admission.kind === 'forward' ? admission.trace : undefined
  let flags = decision.admitted ? FLAGS.withinLimit : 0
  if (decision.shared === true) flags |= FLAGS.sharedWindow
  if (peerTrusted && head.survey.forwardedFor.length > 0) flags |= FLAGS.named
  if (head.upgrade) flags |= FLAGS.upgrade
  to[at] = wall - duration
  to[at + 1] = duration
  to[at + 2] = outcome.status
  to[at + 3] = outcome.requestBytes
  to[at + 4] = outcome.responseBytes
  to[at + 5] = decision.limit
  to[at + 6] = decision.remaining
  to[at + 7] = decision.closesIn
  to[at + 8] = record.lookup
  if (trace === undefined) to.fill(0, at + 9, at + 14)
  else {
    if (trace.reused) flags |= FLAGS.reused
    if (trace.tolerant) flags |= FLAGS.tolerant
    to[at + 9] = trace.waited
    to[at + 10] = trace.sentAt === 0 ? 0 : trace.sentAt - start
    to[at + 11] = trace.headAt === 0 ? 0 : trace.headAt - start
    to[at + 12] = trace.status
    to[at + 13] = trace.attempts
  }
  to[at + 14] = flags
  to[at + 15] = codeOf(record)
}

/** How often each of these words occurs is bounded, so they are kept as one number: most requests then have few words. */
const KINDS = ['refused', 'own-endpoint', 'forward'] as const
const ENDPOINTS = ['api', 'oauth'] as const
const OWNERS = ['client', 'grant', 'device'] as const
const ENDS = ['complete', 'aborted', 'cut'] as const
const VERSIONS = ['1.0', '1.1', '2'] as const
const TOKENS = ['', 'valid', 'unavailable', 'missing', 'malformed', 'unknown', 'expired', 'revoked'] as const

function codeOf({ admission, endpoint, outcome, head }: DecidedRecord): number {
  const { identity } = admission
  const token = identity === undefined ? '' : identity.kind === 'refused' ? identity.cause : identity.kind
  return (
    KINDS.indexOf(admission.kind) |
    (ENDPOINTS.indexOf(endpoint) << 2) |
    (OWNERS.indexOf(admission.per) << 3) |
    (ENDS.indexOf(outcome.end) << 5) |
    (VERSIONS.indexOf(head.version) << 7) |
    (TOKENS.indexOf(token) << 9)
  )
}

/** The words of a request on one line each, the id first, the path last. It has neither the query nor a field nor the body. */
export function wordsOf({
  admission,
  requestId,
  client,
  grant,
  refusal,
  wouldRefuse,
  head,
}: DecidedRecord): string {
  const trace = admission.kind === 'forward' ? admission.trace : undefined
  const path = pathOf(head.target).slice(0, LONGEST_PATH)
  const unusual = unusualWords(refusal, wouldRefuse, trace?.failure)
  return `${requestId}\n${client}\n${grant ?? ''}\n${unusual}\n${trace?.route ?? ''}\n${head.method.slice(0, LONGEST_METHOD)}\n${path}`
}

/** For most requests all four are empty, and for a flood all but the first: joining fewer strings takes less time. */
function unusualWords(
  refusal: Refusal | undefined,
  wouldRefuse: Refusal | undefined,
  failure: string | undefined,
): string {
  const name = refusal === undefined ? '' : nameOf(refusal)
  const description = refusal !== undefined && 'description' in refusal ? refusal.description : ''
  if (description === '' && wouldRefuse === undefined && failure === undefined) return `${name}\n\n\n`
  return `${name}\n${description}\n${wouldRefuse === undefined ? '' : nameOf(wouldRefuse)}\n${failure ?? ''}`
}

/** The facts that `writeNumbers` and `wordsOf` wrote. */
export function readFacts(numbers: Float64Array, words: string): RequestFacts {
  const number = (index: number): number => numbers[index] ?? 0
  const code = number(15)
  const [id, client, grant, refusal, description, wouldRefuse, failure, route, method, ...path] =
    words.split('\n')
  return {
    time: number(0),
    duration: number(1),
    status: number(2),
    requestBytes: number(3),
    responseBytes: number(4),
    limit: number(5),
    remaining: number(6),
    closesIn: number(7),
    lookup: number(8),
    waited: number(9),
    sentAfter: number(10),
    headAfter: number(11),
    deviceStatus: number(12),
    attempts: number(13),
    flags: number(14),
    id: id ?? '',
    kind: KINDS[code & 3] ?? 'refused',
    endpoint: ENDPOINTS[(code >> 2) & 1] ?? 'api',
    client: client ?? '',
    per: OWNERS[(code >> 3) & 3] ?? 'client',
    token: TOKENS[(code >> 9) & 7] ?? '',
    grant: grant ?? '',
    refusal: refusal ?? '',
    description: description ?? '',
    wouldRefuse: wouldRefuse ?? '',
    failure: failure ?? '',
    end: ENDS[(code >> 5) & 3] ?? 'complete',
    version: VERSIONS[(code >> 7) & 3] ?? '1.1',
    route: route ?? '',
    method: printable(method ?? ''),
    path: printable(path.join('?')),
  }
}

/** Visible ASCII, so that a request cannot send control sequences to a terminal. */
function printable(text: string): string {
  return text.replace(/[^ -~]/g, '?')
}
