import { performance as loop } from 'node:perf_hooks'

/** A number for the present turn of the event loop: another one after each wait for input. */
export const turnOfLoop = (): number => loop.nodeTiming.uvMetricsInfo.loopCount

/** What `afterTurn` has put off. */
export type Postponed = NodeJS.Immediate

/** Calls `f` when this turn of the event loop has read all input. Put off by what is itself put off, it is called a turn later. */
export function afterTurn(f: () => void): Postponed {
  return setImmediate(f)
}

/** `f` is not called any more. */
export function forgetTurn(postponed: Postponed | undefined): void {
  clearImmediate(postponed)
}

/** Resolves when this turn of the event loop has read all input: long work gives way to other work. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
