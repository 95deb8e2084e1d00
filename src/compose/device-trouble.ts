import { canDiagnose, diagnose } from '../device/diagnosis.ts'
import type { UpstreamTarget } from '../device/target.ts'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Logger } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'

/** How often the cause of a failure is looked for, and logged (ms): a device with a wrong certificate fails all day. */
const INTERVAL = 3_600_000

/** Failures in a row before the cause is looked for: from then on the breaker takes the device for down, too. */
const FAILURES_IN_A_ROW = 3

/** How long the device may take to answer (ms). */
const LIMIT = 5_000

export interface DeviceTroubleDependencies {
  /** The configuration key of the service. */
  readonly key: string
  readonly clock: Clock
  readonly log: Logger
  readonly onBug: (error: unknown) => void
}

/** Observes the outcomes of requests. */
export interface TroubleWatch {
  responded(): void
  failed(failure: UpstreamFailure): void
  /** Aborts the attempt that is under way; nothing is logged later. */
  close(): void
}

/**
 * Watches the outcomes of requests. After three failures in a row that TLS may explain, it opens one TLS connection and logs the
 * cause, at most once an hour: clients and metrics see only a code such as `tls_certificate_error`. It does not try a device that
 * has answered in cleartext: a TLS hello confuses old firmware.
 */
export function watchTrouble(
  target: UpstreamTarget,
  { key, clock, log, onBug }: DeviceTroubleDependencies,
): TroubleWatch {
  const isCleartext = target.origin.startsWith('http:')
  const closing = new AbortController()
  let last = Number.NEGATIVE_INFINITY
  let speaksHttp = false
  let inARow = 0

  async function explain(): Promise<void> {
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(LIMIT)])
    const found = await diagnose(target, key, signal)
    if (found === undefined || closing.signal.aborted) return
    const { reason, remedy } = found
    log.error({ reason, remedy }, 'cannot connect to the device: a fault in its TLS or in upstream.url')
  }

  return {
    responded() {
      speaksHttp = isCleartext
      inARow = 0
    },
    failed(failure) {
      inARow += 1
      const now = clock.monotonic()
      const isDue = inARow >= FAILURES_IN_A_ROW && now - last >= INTERVAL
      if (!isDue || speaksHttp || closing.signal.aborted || !canDiagnose(failure, target)) return
      last = now
      explain().catch(onBug)
    },
    close: () => closing.abort(),
  }
}
