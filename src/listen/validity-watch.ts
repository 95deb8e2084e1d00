import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import { describeValidity, type Validity, type ValidPeriod, validityOf } from './validity.ts'

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
