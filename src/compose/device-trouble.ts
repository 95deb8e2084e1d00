import { canDiagnose, diagnose } from '../device/diagnosis.ts'
import type { UpstreamTarget } from '../device/target.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'

/** How often the cause of a failure is looked for, and logged (ms): a device with a wrong certificate fails all day. */
const INTERVAL = 3_600_000

/** Failures in a row before the cause is looked for: from then on the breaker takes the device for down, too. */
const ENOUGH = 3

/** How long the device may take to answer (ms). */
const LIMIT = 5_000

export interface DeviceTroubleDependencies {
  /** The configuration key of the service. */
  readonly key: string
  readonly clock: Clock
  readonly log: Logger
  readonly onBug: (error: unknown) => void
}

interface Outcomes {
  /** @param duration ms */
  readonly responded: (duration: number) => void
  readonly failed: (failure: UpstreamFailure) => void
}

/**
 * Passes outcomes of requests on. After three failures in a row, if TLS may have caused the last one, it opens one connection of its
 * own, at most once an hour, and logs what it finds: to clients and metrics a failure is only a word such as
 * `tls_certificate_error`. A device that has responded over cleartext is not tried, because TLS confuses old firmware.
 */
export function explainTrouble(
  target: UpstreamTarget,
  { responded, failed }: Outcomes,
  { key, clock, log, onBug }: DeviceTroubleDependencies,
): Outcomes {
  let last = Number.NEGATIVE_INFINITY
  let speaksHttp = false
  let inARow = 0

  function explain(failure: UpstreamFailure): void {
    inARow += 1
    const now = clock.monotonic()
    if (inARow < ENOUGH || speaksHttp || now - last < INTERVAL || !canDiagnose(failure, target)) return
    last = now
    diagnose(target, key, LIMIT)
      .then((found) => {
        if (found === undefined) return
        const { reason, remedy } = found
        log.error({ reason, remedy }, 'the device cannot be talked to')
      })
      .catch(onBug)
  }

  const isCleartext = target.origin.startsWith('http:')
  return {
    responded(duration) {
      speaksHttp = isCleartext
      inARow = 0
      responded(duration)
    },
    failed(failure) {
      failed(failure)
      explain(failure)
    },
  }
}
