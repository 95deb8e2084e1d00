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
