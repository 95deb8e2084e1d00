/** Collects all garbage of this thread. What a `WeakRef` was asked for in this turn stays until the next. */
export function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error('vitest.config.ts starts the tests with --expose-gc')
  globalThis.gc()
}
