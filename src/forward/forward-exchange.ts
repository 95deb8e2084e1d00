import type { Exchange, Forward, WrittenBy } from '../http/exchange.ts'

/** An admitted request as this room sees it, which writes `DeviceFacts`. */
export type ForwardExchange<E extends Exchange = Exchange> = Forward<E> & WrittenBy<'forward'>

/**
 * The door of this room: turns a function of it into one that other rooms call with any request that the gate has admitted. Each function
 * passes through it once, so the door costs a request nothing.
 */
export function atForward<More extends readonly unknown[]>(
  work: (exchange: ForwardExchange, ...more: More) => void,
): (exchange: Forward, ...more: More) => void {
  // Proof of the cast: the two types differ only for the compiler. See `WrittenBy`.
  return work as (exchange: Forward, ...more: More) => void
}
