import type { Exchange, WrittenBy } from '../http/exchange.ts'

/** An exchange as this room sees it, which keeps texts with its head (`DerivedByRecord`). */
export type RecordExchange = WrittenBy<'record'>

/**
 * The door of this room: turns a function of the room into one that other rooms can call with any exchange. This happens once for each
 * function, so it costs a request nothing.
 */
export function atRecord<More extends readonly unknown[], Result>(
  work: (exchange: RecordExchange, ...more: More) => Result,
): (exchange: Exchange, ...more: More) => Result {
  // Proof of the cast: the two types differ only for the compiler. See `WrittenBy`.
  return work as (exchange: Exchange, ...more: More) => Result
}
