import type { Exchange, WrittenBy } from '../http/exchange.ts'

/** An exchange as the gate sees it, which writes `GateFacts`. */
export type GateExchange = WrittenBy<'gate'>

/**
 * The door of the gate: turns a function of this room into one that other rooms call with any exchange. The gate passes each of its
 * functions through it once, so the door costs a request nothing.
 */
export function atGate<More extends readonly unknown[], Result>(
  work: (exchange: GateExchange, ...more: More) => Result,
): (exchange: Exchange, ...more: More) => Result {
  // Proof of the cast: the two types differ only for the compiler. See `WrittenBy`.
  return work as (exchange: Exchange, ...more: More) => Result
}
