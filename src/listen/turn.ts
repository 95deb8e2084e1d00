import type { Exchange } from '../http/exchange.ts'
import { REQUEST_WORK, type TurnBudget } from '../system/turn-budget.ts'

/**
 * Serves a request now, or in a later turn of the event loop if the budget of its client is used up. While it waits, the client is charged
 * for it. A request that has ended in the meantime is not served.
 *
 * @param serve its errors reach the caller; in a later turn they go to `onBug`, and the exchange is cut
 */
export function serveInTurn<E extends Exchange>(
  turns: TurnBudget,
  exchange: E,
  serve: (exchange: E) => void,
  onBug: (error: unknown) => void,
): void {
  if (turns.take(REQUEST_WORK)) {
    serve(exchange)
    return
  }
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
