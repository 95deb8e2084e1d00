import type { GateFacts, OwnEndpoint, Per, WindowType } from '../http/admission.ts'
import type { Exchange, Outcome } from '../http/exchange.ts'
import type { AuthFailure } from '../http/refusal.ts'
import { shownPath } from '../http/request-path.ts'
import { nameOf } from './access-log.ts'

/** The longest values that are kept, in characters. */
const LONGEST_PATH = 256
const LONGEST_METHOD = 32

/** The numbers that are read off an exchange, and off the decision of its limit. Times are in ms; 0 means that there is none. */
const OF_EXCHANGE = [
  'start',
  'duration',
  'status',
  'requestBytes',
  'responseBytes',
  'lookup',
  'waited',
  'places',
  'sentAt',
  'headAt',
  'deviceStatus',
  'attempts',
  'reused',
  'tolerant',
] as const
const OF_DECISION = ['limit', 'remaining', 'closesIn', 'admitted', 'shared', 'overflow'] as const
const NUMBER_NAMES = ['wall', ...OF_EXCHANGE, ...OF_DECISION] as const

/** The words of a request as they are kept: the id first, to be found, and the path last, because a long one is cut. */
const WORD_NAMES = [
  'id',
  'kind',
  'endpoint',
  'per',
  'end',
  'version',
  'token',
  'ownEndpoint',
  'marks', // `forwarded`: a trusted proxy reported the address of the client in `X-Forwarded-For`; `upgrade`
  'route', // `none`: no service of the device was chosen
  'client',
  'grant',
  'refusal', // its name in the access log
  'description', // the sentence that the client got
  'wouldRefuse',
  'failure',
  'method',
  'path',
] as const

type Numbers = Readonly<Record<(typeof NUMBER_NAMES)[number], number>>
type Words = Readonly<Record<(typeof WORD_NAMES)[number], string>>

/** What is remembered of a request. 0 and the empty text mean that there is none, and for a fact with two values that it is not so. */
export interface RequestFacts extends Numbers, Words {
  /** When the request head was read (ms since the epoch). */
  readonly time: number
  /** When the first attempt to send it to the device began, and when the head of the response came: ms since `time`. */
  readonly sentAfter: number
  readonly headAfter: number
  readonly kind: GateFacts['kind']
  readonly endpoint: WindowType
  readonly per: Per
  readonly end: Outcome
  readonly ownEndpoint: '' | OwnEndpoint
  /** `valid`, the reason why the token is not accepted, or `unavailable`; empty if no token was looked up. */
  readonly token: '' | 'valid' | 'unavailable' | AuthFailure
}

/** How many numbers `writeNumbers` writes. */
export const NUMBERS = NUMBER_NAMES.length

/** Writes the numbers of a request to `to`, from index `at`. @param wall when the exchange ended (ms since the epoch) */
export function writeNumbers(exchange: Exchange, wall: number, to: Float64Array, at: number): void {
  const { decision } = exchange
  let next = at
  to[next++] = wall
  // By index: until V8 has compiled it, an iterator allocates an object for each name.
  for (let i = 0; i < OF_EXCHANGE.length; i += 1) to[next++] = Number(exchange[OF_EXCHANGE[i] ?? 'start'])
  for (let i = 0; i < OF_DECISION.length; i += 1)
    to[next++] = Number(decision[OF_DECISION[i] ?? 'limit'] ?? 0)
}

/** The words of a request, one a line. They have neither the query nor a field nor the body. */
export function wordsOf(exchange: Exchange): string {
  const { client, head, refusal, wouldRefuse, failure = '', cause, identity } = exchange
  const isForwarded = client.peerTrusted && head.survey.forwardedFor.length > 0
  return [
    exchange.requestId,
    exchange.kind,
    exchange.endpoint,
    exchange.per,
    exchange.outcome ?? 'complete',
    head.version,
    identity?.kind === 'refused' ? identity.cause : identity?.kind,
    exchange.classified.ownEndpoint,
    `${isForwarded ? 'forwarded' : ''}${head.upgrade ? 'upgrade' : ''}`,
    exchange.route ?? 'none',
    client.address,
    exchange.grant,
    refusal === undefined ? '' : nameOf(refusal),
    refusal !== undefined && 'description' in refusal ? refusal.description : '',
    wouldRefuse === undefined ? '' : nameOf(wouldRefuse),
    cause === '' ? failure : `${failure}: ${cause}`,
    head.method.slice(0, LONGEST_METHOD),
    (head.shown ?? shownPath(head)).slice(0, LONGEST_PATH),
  ].join('\n')
}

/** The facts that `writeNumbers` and `wordsOf` wrote. */
export function readFacts(numbers: Float64Array, text: string): RequestFacts {
  const lines = text.split('\n')
  // A path of HTTP/2 may have line ends.
  const words = [...lines.splice(0, WORD_NAMES.length - 1), lines.join('\n')]
  const named = [
    ...NUMBER_NAMES.map((name, at) => [name, numbers[at]]),
    // Visible ASCII, so that a request cannot send control sequences to a terminal.
    ...WORD_NAMES.map((name, at) => [name, words[at]?.replace(/[^ -~]/g, '?') ?? '']),
  ]
  // Proof of the cast: the names are all there, and `wordsOf` wrote such words.
  const facts = Object.fromEntries(named) as RequestFacts
  const after = (time: number): number => (time === 0 ? 0 : time - facts.start)
  return {
    ...facts,
    time: facts.wall - facts.duration,
    sentAfter: after(facts.sentAt),
    headAfter: after(facts.headAt),
  }
}
