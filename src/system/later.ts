/** A value, or a promise of it if another process has to be asked. */
export type Later<T> = T | Promise<T>

/** Calls `f` with an answer: at once if it is known, which saves the cost of a promise. */
export function withAnswer<T, R>(asked: Later<T>, f: (answer: T) => Later<R>): Later<R> {
  return asked instanceof Promise ? asked.then(f) : f(asked)
}
