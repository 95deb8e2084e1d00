import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import { everySecond } from '../system/clock.ts'

/** The time in which a certificate chain is valid, with the certificate that sets each bound. */
export interface ValidPeriod {
  readonly from: Bound
  readonly until: Bound
}

interface Bound {
  /** Milliseconds since the Unix epoch. */
  readonly at: number
  /** The name of the certificate in messages. */
  readonly of: string
}

/** `expiring`: the last 30 days before the end. */
export type Validity = 'not-yet-valid' | 'valid' | 'expiring' | 'expired'

const DAY = 86_400_000

/** Long enough for a renewal that needs a purchase and a maintenance window. */
const NOTICE = 30 * DAY

/** @param wall milliseconds since the Unix epoch */
export function validityOf({ from, until }: ValidPeriod, wall: number): Validity {
  if (wall < from.at) return 'not-yet-valid'
  if (wall >= until.at) return 'expired'
  return wall >= until.at - NOTICE ? 'expiring' : 'valid'
}

/** Describes the validity in one sentence, for `check` and the log. */
export function describeValidity(period: ValidPeriod, wall: number): string {
  const { from, until } = period
  switch (validityOf(period, wall)) {
    case 'not-yet-valid':
      return `${from.of} is not valid before ${dateOf(from)}: clients that check it do not connect. Is the clock right?`
    case 'expired':
      return `${until.of} expired on ${dateOf(until)}: clients that check it do not connect`
    case 'expiring':
      return `${until.of} expires on ${dateOf(until)}, in ${Math.ceil((until.at - wall) / DAY)} days`
    case 'valid':
      return `${until.of} is valid until ${dateOf(until)}`
  }
}

function dateOf({ at }: Bound): string {
  return new Date(at).toISOString()
}

export interface ValidityWatch {
  /** Call this when new connections begin to use a certificate with this period. */
  served(period: ValidPeriod): void
  close(): void
}

/** How often the log repeats that a certificate is not valid, or expires soon (ms). */
const REPEAT = 86_400_000

/**
 * Logs that the served certificate is not valid yet, expires soon or has expired: when it is first served, when this changes, and
 * once a day.
 */
export function watchValidity(clock: Clock, log: Logger): ValidityWatch {
  let period: ValidPeriod | undefined
  let logged: Validity = 'valid'
  let loggedAt = 0

  function check(): void {
    if (period === undefined) return
    const wall = clock.wall()
    const validity = validityOf(period, wall)
    const isDue = validity !== 'valid' && Math.abs(wall - loggedAt) >= REPEAT
    if (validity === logged && !isDue) return
    logged = validity
    loggedAt = wall
    report(validity, describeValidity(period, wall))
  }

  function report(validity: Validity, reason: string): void {
    if (validity === 'not-yet-valid') log.error({ reason }, 'the certificate is not valid yet')
    else if (validity === 'expired') log.error({ reason }, 'the certificate has expired')
    else if (validity === 'expiring') log.warn({ reason }, 'the certificate expires soon')
    else log.info({ reason }, 'the certificate is valid')
  }

  const seconds = everySecond(check)
  return {
    served(next) {
      period = next
      loggedAt = 0
      check()
    },
    close: seconds.close,
  }
}
