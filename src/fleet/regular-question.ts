import type { Clock } from '../system/clock.ts'
import { unlessUnavailable } from './shared-store.ts'

interface Dependencies {
  readonly clock: Pick<Clock, 'monotonic'>
  /** The least time between two questions (ms). */
  readonly every: number
  readonly onBug: (error: unknown) => void
}

/**
 * Returns a function that asks the store a question, unless the last question has no answer yet or is less than `every` old. If the store
 * does not answer, the question is dropped: a later call asks again.
 */
export function regularQuestion({ clock, every, onBug }: Dependencies) {
  let isAsking = false
  let askedAt = Number.NEGATIVE_INFINITY
  return (ask: () => Promise<void>): void => {
    const now = clock.monotonic()
    if (isAsking || now - askedAt < every) return
    isAsking = true
    askedAt = now
    ask()
      .catch(unlessUnavailable(onBug))
      .finally(() => {
        isAsking = false
      })
  }
}
