import type { Clock, Timer } from '../system/clock.ts'
import type { Logger } from './log.ts'
import { TROUBLES } from './troubles.ts'

/** The most lines in a period: a device that comes and goes with every request must not fill a disk. */
const LINES = 10
/** The length of a period (ms). */
const PERIOD = 60_000

const DOWN = TROUBLES.PosternDeviceDown

/**
 * Logs when a service of the device goes down, with the failure, and when it comes up again, with its downtime in whole seconds. At most
 * ten lines a minute; after them, one line at the end of the minute has the number of further changes and the present state.
 *
 * @param url the address of the service, without credentials
 */
export function createDeviceChanges(log: Logger, url: string, clock: Pick<Clock, 'monotonic' | 'after'>) {
  let lines = 0
  let withheld = 0
  let downAt: number | undefined
  let latest: string | null = null
  let timer: Timer | undefined

  function sumUp(): void {
    timer?.cancel()
    timer = undefined
    lines = 0
    const changes = withheld
    withheld = 0
    if (changes === 0) return
    const now = downAt === undefined ? { now: 'up' } : { now: 'down', failure: latest }
    log.warn({ changes, ...now }, 'the device goes away and comes back')
  }

  return {
    /** @param failure the last failure: its name, or the status of a health check */
    changed(up: boolean, failure: string | null): void {
      const wentAway = downAt
      if (up === (wentAway === undefined)) return
      downAt = up ? undefined : clock.monotonic()
      latest = failure
      timer ??= clock.after(PERIOD, sumUp)
      if (lines === LINES) {
        withheld += 1
        return
      }
      lines += 1
      // An error, because clients get no response of the device, even though the sidecar works.
      if (wentAway === undefined) log.error({ url, failure, remedy: DOWN.remedy }, DOWN.line)
      else log.info({ seconds: Math.round((clock.monotonic() - wentAway) / 1000) }, 'the device is up again')
    },
    /** Writes the pending sum. */
    close: sumUp,
  }
}
