import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'

/** When a certificate chain is valid, and which of its certificates sets each bound. */
export interface ValidPeriod {
  readonly from: Bound
  readonly until: Bound
}

interface Bound {
  /** Milliseconds since the Unix epoch. */
  readonly at: number
  /** The certificate, as messages name it. */
  readonly of: string
}

/** `valid` is followed by `expiring` for the last 30 days. */
export type Validity = 'not-yet-valid' | 'valid' | 'expiring' | 'expired'

const DAY = 86_400_000

/** How long a renewal may take that needs a person, a purchase and a maintenance window. */
const NOTICE = 30 * DAY

/** @param wall milliseconds since the Unix epoch */
export function validityOf({ from, until }: ValidPeriod, wall: number): Validity {
  if (wall < from.at) return 'not-yet-valid'
  if (wall >= until.at) return 'expired'
  return wall >= until.at - NOTICE ? 'expiring' : 'valid'
}

/** The validity as a sentence, for `check` and the log. */
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
  /** New connections get this certificate from now on. */
  served(period: ValidPeriod): void
  close(): void
}

/** How often the clock is compared with the certificate (ms). */
const INTERVAL = 1_000

/** How often the log repeats that a certificate is not valid, or expires soon (ms). */
const REPEAT = 86_400_000

/**
 * Tells the log when the certificate that is served is not valid yet, expires soon or has expired: when it is first
 * served, when that changes while it is served, and once a day.
 */
export function watchValidity(clock: Clock, log: Logger): ValidityWatch {
  let period: ValidPeriod | undefined
  let told: Validity = 'valid'
  let toldAt = 0

  function look(): void {
    if (period === undefined) return
    const wall = clock.wall()
    const validity = validityOf(period, wall)
    const isDue = validity !== 'valid' && Math.abs(wall - toldAt) >= REPEAT
    if (validity === told && !isDue) return
    told = validity
    toldAt = wall
    report(validity, describeValidity(period, wall))
  }

  function report(validity: Validity, reason: string): void {
    if (validity === 'not-yet-valid') log.error({ reason }, 'the certificate is not valid yet')
    else if (validity === 'expired') log.error({ reason }, 'the certificate has expired')
    else if (validity === 'expiring') log.warn({ reason }, 'the certificate expires soon')
    else log.info({ reason }, 'the certificate is valid')
  }

  const timer = setInterval(look, INTERVAL).unref()
  return {
    served(next) {
      period = next
      toldAt = 0
      look()
    },
    close: () => clearInterval(timer),
  }
}
