import type { Exchange } from '../http/exchange.ts'
import type { Refusal } from '../http/refusal.ts'
import { shownPath } from '../http/request-path.ts'
import { nameOfGrant } from '../http/scope.ts'
import type { Clock } from '../system/clock.ts'
import { type Logger, lineWriter } from './log.ts'

export type AccessLog = ReturnType<typeof createAccessLog>

/** Refusals of one kind that are logged one by one in a period (ms). One line then reports the number of the others. */
const LINES_PER_PERIOD = 10
const PERIOD = 10_000

/** The longest values in a line, in characters. */
const LONGEST_PATH = 256
const LONGEST_METHOD = 32
const LONGEST_GRANT = 64
/** Longer than any address in text, with a zone. */
const LONGEST_CLIENT = 64

/**
 * Writes one line for each exchange, with the path but without the query, the fields and the body, which may hold secrets. A
 * flood of refusals of one kind costs eleven lines in ten seconds, so an attacker cannot fill the disk.
 */
export function createAccessLog(log: Logger, clock: Clock) {
  const floods = new Map<string, Flood>()
  const writeLine = lineWriter(log)
  const timestamp = createTimestamp()

  /** Whether this refusal gets a line. If not, it is counted for the sum. */
  function getsLine(kind: string): boolean {
    let flood = floods.get(kind)
    if (flood === undefined) {
      // Runs only after refusals: an idle process sleeps.
      flood = { lines: 0, withheld: 0, end: setTimeout(() => sumUp(kind), PERIOD).unref() }
      floods.set(kind, flood)
    }
    const isLogged = flood.lines < LINES_PER_PERIOD
    if (isLogged) flood.lines += 1
    else flood.withheld += 1
    return isLogged
  }

  function sumUp(kind: string): void {
    const { end, withheld: count } = floods.get(kind) ?? { withheld: 0 }
    clearTimeout(end)
    floods.delete(kind)
    if (count > 0) log.info({ refusal: kind, count }, 'more refusals')
  }

  return {
    write(exchange: Exchange): void {
      const { refusal } = exchange
      if (refusal !== undefined && !getsLine(refusal.kind)) return
      if (log.isLevelEnabled('info')) writeRequest(writeLine, exchange, timestamp(clock.wall()))
    },
    /** Writes the pending sums of refusals. */
    close(): void {
      for (const kind of [...floods.keys()]) sumUp(kind)
    },
  }
}

/** The refusals of one kind in a period. */
interface Flood {
  lines: number
  withheld: number
  readonly end: NodeJS.Timeout
}

/**
 * The line that pino would write. It is built by hand, which is faster, because every request writes one, and in three pieces: one for
 * each value took 1 µs more. 30 is `info`.
 */
function writeRequest(write: ReturnType<typeof lineWriter>, exchange: Exchange, time: string): void {
  const { status, requestBytes, responseBytes } = exchange
  const ms = Math.round(exchange.duration * 10) / 10
  write(
    `{"level":30,"time":"${time}","request_id":"${exchange.requestId}`,
    knownText(exchange),
    `${status}${unusualText(exchange)},"ms":${ms},"in":${requestBytes},"out":${responseBytes},"msg":"request"}\n`,
  )
}

/** What most requests do not have. */
function unusualText({ refusal, wouldRefuse, endedFor, outcome }: Exchange): string {
  let text = outcome === 'complete' ? '' : `,"end":"${outcome}"`
  if (refusal !== undefined) text += `,"refusal":"${nameOf(refusal)}"`
  if (endedFor !== undefined && refusal === undefined) text += `,"ended_for":"${nameOf(endedFor)}"`
  if (wouldRefuse !== undefined) text += `,"would_refuse":"${nameOf(wouldRefuse)}"`
  return text
}

/** What stands between id and status: grant, client and head. Many requests have the same, so the text is kept with the head. */
function knownText({ head, client, endpoint, grant }: Exchange): string {
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

/** The name of a refusal in the access log. */
export function nameOf(refusal: Refusal): string {
  switch (refusal.kind) {
    case 'unauthorized':
      return `unauthorized: ${refusal.cause}`
    case 'upstream':
      return `upstream: ${refusal.failure}`
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

/** Formats times (ms since the epoch) as `toISOString` does. Within one second it is much cheaper. */
export function createTimestamp(): (time: number) => string {
  let second = Number.NaN
  let text = ''
  return (time) => {
    const current = Math.floor(time / 1000)
    if (current !== second) {
      second = current
      text = new Date(current * 1000).toISOString().slice(0, -'000Z'.length)
    }
    return `${text}${String(Math.floor(time) - current * 1000).padStart(3, '0')}Z`
  }
}

/** Counts the connections that the public listener refuses, and logs those of addresses that may not connect, as it logs requests. */
export function refusedConnections(
  metrics: { readonly connections: { refused(reason: string): void } },
  log: Logger,
  settings: { readonly config: { readonly log: { readonly access: boolean } } },
): (reason: string, peer?: string) => void {
  return (reason, peer) => {
    metrics.connections.refused(reason)
    if (peer !== undefined && settings.config.log.access)
      log.info({ client: peer, reason }, 'connection refused: see listen.allow and listen.deny')
  }
}
