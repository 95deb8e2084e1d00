import type { Exchange } from '../http/exchange.ts'
import { endingOf, refusalName } from './access-log.ts'
import { atRecord, type RecordExchange } from './record-exchange.ts'
import { shownPath } from './shown-path.ts'

/** The longest values that are kept, in characters. In a row that is too long, the path loses its end. */
const LONGEST_PATH = 256
const LONGEST_METHOD = 32
const LONGEST_ROW = 500

/** All but visible ASCII, so that a request cannot send control sequences to a terminal. */
const UNPRINTABLE = /[^ -~]/g

type Value = string | number | boolean | null

/** The names of the facts, in the order of a row. */
const COLUMNS = [
  'id',
  'time',
  'duration',
  'status',
  'requestBytes',
  'responseBytes',
  'lookup',
  'waited',
  'places',
  'sentAfter',
  'headAfter',
  'deviceStatus',
  'attempts',
  'reused',
  'tolerant',
  'deviation',
  'limit',
  'remaining',
  'closesIn',
  'admitted',
  'shared',
  'overflow',
  'kind',
  'endpoint',
  'per',
  'end',
  'version',
  'token',
  'ownEndpoint',
  'forwarded',
  'upgrade',
  'route',
  'client',
  'grant',
  'refusal',
  'description',
  'endedFor',
  'wouldRefuse',
  'failure',
  'method',
  'path',
] as const

export type RequestFacts = ReturnType<typeof factsOf>

/**
 * The facts that are remembered of a request that has ended, without its query, its fields and its body. Times are in ms. 0 and the empty
 * text stand for a missing value.
 *
 * @param wall when it ended (ms since the Unix epoch)
 */
function factsOf(exchange: RecordExchange, wall: number) {
  const {
    client,
    head,
    start,
    duration,
    decision,
    refusal,
    wouldRefuse,
    endedFor,
    idle,
    identity,
    sentAt,
    headAt,
  } = exchange
  const { failure = '', cause } = exchange
  return {
    id: exchange.requestId,
    /** When the request head was read (ms since the Unix epoch). */
    time: wall - duration,
    duration,
    status: exchange.status,
    requestBytes: exchange.requestBytes,
    responseBytes: exchange.responseBytes,
    lookup: exchange.lookup,
    waited: exchange.waited,
    places: exchange.places,
    /** When the first attempt to send the request to the device began, and when the head of the response came: ms since `time`; null: never. */
    sentAfter: sentAt === 0 ? null : sentAt - start,
    headAfter: headAt === 0 ? null : headAt - start,
    deviceStatus: exchange.deviceStatus,
    attempts: exchange.attempts,
    reused: exchange.reused,
    tolerant: exchange.tolerant,
    deviation: exchange.deviation,
    limit: decision.limit,
    remaining: decision.remaining,
    closesIn: decision.closesIn,
    admitted: decision.admitted,
    shared: decision.shared === true,
    overflow: decision.overflow === true,
    kind: exchange.kind,
    endpoint: exchange.endpoint,
    per: exchange.per,
    end: exchange.outcome ?? 'complete',
    version: head.version,
    /** `valid`, the reason why the token is not accepted, or `unavailable`; empty if no token was looked up. */
    token: identity?.kind === 'refused' ? identity.cause : (identity?.kind ?? ('' as const)),
    ownEndpoint: exchange.classified.ownEndpoint ?? '',
    /** True if a trusted proxy reported the address of the client in `X-Forwarded-For`. */
    forwarded: client.peerTrusted && head.survey.forwardedFor.length > 0,
    upgrade: head.upgrade,
    /** `none`: no service of the device was chosen. */
    route: exchange.route ?? 'none',
    client: client.address,
    /** The grant of the tokens in the response, else that of a valid token in the request, even if the request was refused. */
    grant: exchange.grant ?? (identity?.kind === 'valid' ? identity.grant : ''),
    /** The name of the refusal in the access log. */
    refusal: refusal === undefined ? ('' as const) : refusalName(refusal),
    /** The sentence of the refusal that the client got. */
    description: refusal !== undefined && 'description' in refusal ? refusal.description : '',
    /** Why Postern ended the request after admitting it. */
    endedFor: endedFor === undefined && !idle ? ('' as const) : endingOf(exchange),
    wouldRefuse: wouldRefuse === undefined ? '' : refusalName(wouldRefuse),
    failure: (cause === '' ? failure : `${failure}: ${cause}`).replace(UNPRINTABLE, '?'),
    method: head.method.slice(0, LONGEST_METHOD).replace(UNPRINTABLE, '?'),
    path: (head.shown ?? shownPath(head)).slice(0, LONGEST_PATH).replace(UNPRINTABLE, '?'),
  } satisfies Record<(typeof COLUMNS)[number], Value>
}

/** The facts of a request as a row of text. Without the names of the facts, it takes a third of the memory. */
export const requestRow: (exchange: Exchange, wall: number) => string = atRecord(
  (exchange, wall: number): string => {
    const facts = factsOf(exchange, wall)
    const values: Value[] = []
    for (const name of COLUMNS) values.push(facts[name])
    const row = JSON.stringify(values)
    // A deviation does not shorten the path: only the first one of a device is remembered, so few rows have one.
    const excess = row.length - LONGEST_ROW - facts.deviation.length
    if (excess <= 0) return row
    values[COLUMNS.indexOf('path')] = facts.path.slice(0, -excess)
    return JSON.stringify(values)
  },
)

/** The beginning of every row with this id: the id is the first column. */
export const startOf = (id: string): string => `[${JSON.stringify(id)},`

/** The facts of a row. */
export function factsIn(row: string): RequestFacts {
  const values: readonly unknown[] = JSON.parse(row)
  // Proof of the cast: `requestRow` wrote the values of such facts.
  return Object.fromEntries(COLUMNS.map((name, i) => [name, values[i]])) as RequestFacts
}
