import type { Exchange } from '../http/exchange.ts'

/** How long a response may pause when its client has closed its sending side and so may be gone (ms). */
const PATIENCE = 500
/** Interim responses sent meanwhile to a client that has none yet. */
const PROBES = 4

/** An exchange whose client has closed its sending side. */
interface HalfClosed extends Pick<Exchange, 'answered' | 'inform' | 'onEnd'> {
  /** Bytes of the body that were sent. */
  readonly sent: number
  /** Some of them wait for the client: if it is gone, they are what finds out. */
  readonly waits: boolean
  /** Takes the client for gone. */
  abandon(): void
}

/**
 * The client may still be waiting for its answer, or it may have left: only sending something tells, because a connection
 * that nobody holds any more is reset. An interim response is such a thing, and means nothing to whoever is still there.
 * A response that is under way is its own test, as long as it moves.
 */
export function feelForClient(exchange: HalfClosed): void {
  const clock: Recurring = { timer: undefined }
  if (exchange.answered) watchProgress(exchange, clock)
  else probe(exchange, clock, PROBES)
  // Once, however often it looks: a download may go on for days.
  exchange.onEnd(() => clearTimeout(clock.timer))
}

/** What is to be done next. */
interface Recurring {
  timer: NodeJS.Timeout | undefined
}

/** The first probe draws the reset, which the next one meets. */
function probe(exchange: HalfClosed, clock: Recurring, left: number): void {
  if (left === 0) return
  clock.timer = setTimeout(() => {
    if (exchange.answered) return
    exchange.inform(102, [])
    probe(exchange, clock, left - 1)
  }, PATIENCE / PROBES)
}

/** `stood`: at the last look, too. A client that has just taken what waited for it is owed the next piece. */
function watchProgress(exchange: HalfClosed, clock: Recurring, stood = false): void {
  const before = exchange.sent
  clock.timer = setTimeout(() => {
    const stands = exchange.sent === before && !exchange.waits
    if (stands && stood) exchange.abandon()
    else watchProgress(exchange, clock, stands)
  }, PATIENCE / 2)
}
