import type { Logger } from '../record/log.ts'
import { TROUBLES } from '../record/troubles.ts'
import type { Clock } from '../system/clock.ts'
import { MINUTE, SECOND } from './alarm-kinds.ts'
import type { Alarm, AlarmName } from './model.ts'

interface Dependencies {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
  /** The present alarms. Called every ten seconds. */
  readonly alarms: () => readonly Alarm[]
}

/** The alarms that are logged: they follow from figures, so no event has a line. */
const LOGGED = ['PosternDeviceSlow', 'PosternRateLimiting'] as const

const LOOK_EVERY = 10 * SECOND

/** An alarm that comes back sooner than this is still the former one: a figure near its bound must not fill a disk. */
const OVER_AFTER = 10 * MINUTE

/** Logs the beginning of an alarm that has no other line. Call the returned function once a second. */
export function createAlarmLog({ clock, log, alarms }: Dependencies): () => void {
  /** When each alarm was last seen (ms, monotonic). */
  const seen = new Map<AlarmName, number>()
  let lookAt = clock.monotonic() + LOOK_EVERY

  return () => {
    const now = clock.monotonic()
    if (now < lookAt) return
    lookAt = now + LOOK_EVERY
    for (const { name, what } of alarms()) {
      const logged = LOGGED.find((each) => each === name)
      if (logged === undefined) continue
      const { line, remedy } = TROUBLES[logged]
      const isNew = now - (seen.get(name) ?? Number.NEGATIVE_INFINITY) >= OVER_AFTER
      seen.set(name, now)
      if (isNew) log.warn({ what, remedy }, line)
    }
  }
}
