import type { Exchange } from '../http/exchange.ts'
import { prefix64 } from '../http/ip.ts'
import { hasOverride } from '../http/overrides.ts'
import type { AuthFailure, Refusal, UpstreamFailure } from '../http/refusal.ts'
import { isSafe, nameOfGrant } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import type { OpenLog } from './log.ts'
import { atRecord, type RecordExchange } from './record-exchange.ts'
import { createRefusalLines } from './refusal-lines.ts'
import { shownPath } from './shown-path.ts'

/** The requests that have a line. A reload may change this. */
export interface AccessLogRules {
  /** `changes`: only requests that may change something. */
  readonly access: boolean | 'changes'
}

export type AccessLog = ReturnType<typeof createAccessLog>

/** The longest values in a line, in characters. */
export const LONGEST_PATH = 256
const LONGEST_METHOD = 32
const LONGEST_GRANT = 64
/** Longer than any address in text, with a zone. */
const LONGEST_CLIENT = 64

/**
 * Writes one line for each exchange that the rules name: with the path, but without fields, body and query, which may hold secrets. In a
 * flood of refusals, it writes some lines and the sum of the others (see `createRefusalLines`). A refused request that may have changed
 * something always has a line.
 */
export function createAccessLog(
  { log, destination }: OpenLog,
  clock: Clock,
  settings: { readonly config: { readonly log: AccessLogRules } },
) {
  const refusals = createRefusalLines(log, clock)
  const { writeAscii } = destination
  const timestamp = createTimestamp()

  return {
    /** Writes the line of an exchange that has ended, at `wall` (ms since the Unix epoch). */
    write: atRecord((exchange, wall: number): void => {
      const { refusal, client } = exchange
      const { access } = settings.config.log
      if (access !== true && (access === false || !mayChange(exchange))) return
      if (refusal !== undefined && !mayHaveChanged(exchange) && !refusals.take(refusal.kind, client.key))
        return
      if (log.isLevelEnabled('info')) writeAscii(lineOf(exchange, timestamp(wall)))
    }),
    /** Logs that the public listener closed a connection unread because of its address. Bounded like the lines of refused requests. */
    refusedConnection(reason: string, peer: string): void {
      if (settings.config.log.access !== true) return
      if (refusals.take(reason, prefix64(peer))) log.info({ client: peer, reason }, CONNECTION_REFUSED)
    },
    /** Writes the pending sums of refusals. */
    close: refusals.close,
  }
}

const CONNECTION_REFUSED = 'connection refused: see listen.allow'

/**
 * The line that pino would write, with the level 30, `info`. It is built by hand, because every request writes one and this is faster. To
 * format a number with a fraction would cost more than the rest of the line, so the duration is formatted as two whole numbers.
 */
function lineOf(exchange: RecordExchange, time: string): string {
  const { status, requestBytes, responseBytes } = exchange
  const tenths = Math.round(exchange.duration * 10)
  const ms = Math.floor(tenths / 10)
  const fraction = tenths % 10 === 0 ? '' : `.${tenths % 10}`
  return (
    `{"level":30,"time":"${time}","request_id":"${exchange.requestId}${knownText(exchange)}${status}${unusualText(exchange)}` +
    `,"ms":${ms}${fraction},"in":${requestBytes},"out":${responseBytes},"msg":"request"}\n`
  )
}

/** The members that most requests do not have. */
function unusualText(exchange: Exchange): string {
  const { refusal, wouldRefuse, endedFor, idle, outcome } = exchange
  let text = outcome === 'complete' ? '' : `,"end":"${outcome}"`
  if (refusal !== undefined) text += `,"refusal":"${refusalName(refusal)}"`
  if ((endedFor !== undefined || idle) && refusal === undefined)
    text += `,"ended_for":"${endingOf(exchange)}"`
  if (wouldRefuse !== undefined) text += `,"would_refuse":"${refusalName(wouldRefuse)}"`
  return text
}

/** The members between id and status: grant, client and head. Repeated requests have the same, so the text is kept with the head. */
function knownText({ head, client, endpoint, grant }: RecordExchange): string {
  const known = head.logged
  if (known?.client === client && known.grant === grant && known.endpoint === endpoint) return known.text
  const granted = grant === undefined ? '' : `,"grant":${quoted(grant, LONGEST_GRANT)}${namedText(grant)}`
  const text =
    `"${granted},"client":${quoted(client.address, LONGEST_CLIENT)},"method":${quoted(head.method, LONGEST_METHOD)}` +
    `,"path":${quoted(head.shown ?? shownPath(head), LONGEST_PATH)},"version":"${head.version}","endpoint":"${endpoint}","status":`
  head.logged = { client, grant, endpoint, text }
  return text
}

/** A name needs no quoting: see `NAME` in `config/password-fields.ts`. */
function namedText(grant: string): string {
  const name = nameOfGrant(grant)
  return name === '' ? '' : `,"name":"${name}"`
}

/**
 * Whether a request may change something. A request with a safe method may not, unless it has a body, which some programs read as a form,
 * or a field that names another method, path or target. A tunnel may: its content is unknown. The result is kept with the head.
 */
function mayChange({ head, classified: { framing } }: RecordExchange): boolean {
  if (head.changes !== undefined) return head.changes
  const { method, upgrade, survey, fields } = head
  const reads = isSafe(method) && !framing
  head.changes = !reads || upgrade || survey.destination.length > 0 || hasOverride(fields)
  return head.changes
}

/** Whether the device got a request that may change something, although it was refused: for example, the response never came. */
function mayHaveChanged(exchange: RecordExchange): boolean {
  return exchange.attempts > 0 && mayChange(exchange)
}

/** The name of a refusal in the access log. */
type RefusalName =
  | Exclude<Refusal['kind'], 'unauthorized' | 'upstream'>
  | `unauthorized: ${AuthFailure}`
  | 'invalid-grant: other-name'
  | `upstream: ${UpstreamFailure}`
  | 'insufficient-scope: override'

/** The reason why Postern ended an admitted exchange, for the access log and for explanations. Call it only if Postern has ended it. */
export function endingOf({ endedFor }: Pick<Exchange, 'endedFor'>): RefusalName | 'idle' {
  return endedFor === undefined ? 'idle' : refusalName(endedFor)
}

/** The name of a refusal for the access log and for explanations. */
export function refusalName(refusal: Refusal): RefusalName {
  switch (refusal.kind) {
    case 'unauthorized':
      return `unauthorized: ${refusal.cause}`
    case 'upstream':
      return `upstream: ${refusal.failure}`
    case 'invalid-grant':
      return refusal.cause === undefined ? refusal.kind : `${refusal.kind}: ${refusal.cause}`
    case 'insufficient-scope':
      return refusal.override ? 'insufficient-scope: override' : refusal.kind
    default:
      return refusal.kind
  }
}

/** Text that needs no replacement and no escape. */
const PLAIN = /^[ !#-[\]-~]*$/

/** A JSON string in visible ASCII, so that a request cannot send control sequences to a terminal or log viewer. */
function quoted(text: string, longest: number): string {
  const short = text.length > longest ? `${text.slice(0, longest)}...` : text
  return PLAIN.test(short) ? `"${short}"` : JSON.stringify(short.replace(/[^ -~]/g, '?'))
}

/** Formats times (ms since the Unix epoch) as `toISOString` does, but keeps the text of the last second and of the last ms. */
export function createTimestamp(): (time: number) => string {
  let second = Number.NaN
  let upToSecond = ''
  let last = Number.NaN
  let text = ''
  return (time) => {
    const now = Math.floor(time)
    if (now === last) return text
    const current = Math.floor(now / 1000)
    if (current !== second) {
      second = current
      upToSecond = new Date(current * 1000).toISOString().slice(0, -'000Z'.length)
    }
    last = now
    text = `${upToSecond}${String(now - current * 1000).padStart(3, '0')}Z`
    return text
  }
}

/** Counts the connections that the public listener refuses, and logs those of addresses that `listen.allow` does not admit. */
export function refusedConnections(
  metrics: { readonly connections: { refused(reason: string): void } },
  accessLog: Pick<AccessLog, 'refusedConnection'>,
): (reason: string, peer?: string) => void {
  return (reason, peer) => {
    metrics.connections.refused(reason)
    if (peer !== undefined) accessLog.refusedConnection(reason, peer)
  }
}
