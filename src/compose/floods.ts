import { type Account, STAGES, type Stage } from '../memory/account.ts'
import type { Logger } from '../record/log.ts'
import type { Clock, Timer } from '../system/clock.ts'

/** A flood is over when no stage was in effect for this long (ms). */
const OVER_AFTER = 10_000

/**
 * Follows floods: times in which a stage of load shedding is in effect. Logs a stage only if it is worse than the earlier stages of the
 * flood, and logs the end of the flood, so a flood costs only a few lines.
 */
export function watchFloods(clock: Pick<Clock, 'after'>, log: Logger) {
  /** The rank of the worst stage of this flood; -1: none. */
  let worst = -1
  let shedInFlood = 0
  let shed = 0
  let untilOver: Timer | undefined

  function end(): void {
    log.info({ shed: shedInFlood }, 'memory: clients hold little again')
    worst = -1
    shedInFlood = 0
  }

  function logIfWorse(stage: Stage, account: Pick<Account, 'fullness' | 'sums' | 'limit'>): void {
    const rank = STAGES.indexOf(stage)
    if (rank <= worst) return
    worst = rank
    const held = Object.fromEntries(Object.entries(account.sums).filter(([, bytes]) => bytes > 0))
    const fullness = Math.round(account.fullness * 100) / 100
    log.warn(
      { stage, fullness, limit: account.limit, held },
      'memory: clients hold much, so those who hold most get less',
    )
  }

  return {
    /** Call this when another stage takes effect; undefined: none. */
    stage(stage: Stage | undefined, account: Pick<Account, 'fullness' | 'sums' | 'limit'>): void {
      untilOver?.cancel()
      if (stage === undefined) untilOver = clock.after(OVER_AFTER, end)
      else logIfWorse(stage, account)
    },
    /** Call this when something was refused to a client or taken from it. */
    shed(): void {
      shedInFlood += 1
      shed += 1
    },
    /** The number of calls of `shed` since the start. */
    timesShed: (): number => shed,
  }
}
