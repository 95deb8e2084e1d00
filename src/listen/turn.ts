import type { Exchange } from '../http/exchange.ts'
import { REQUEST_WORK, type TurnBudget } from '../system/turn-budget.ts'

/**
 * Serves a request in a later turn of the event loop: its client had its part of this one. Until then it is open like any other, so its
 * client is charged for it, and one that has ended meanwhile is not served.
 */
export function waitForTurn<E extends Exchange>(
  turns: TurnBudget,
  exchange: E,
  serve: (exchange: E) => void,
  onBug: (error: unknown) => void,
): void {
  turns.wait(() => {
    if (exchange.ended) return
    turns.spend(REQUEST_WORK)
    try {
      serve(exchange)
    } catch (bug) {
      onBug(bug)
      exchange.cut()
    }
  })
}
