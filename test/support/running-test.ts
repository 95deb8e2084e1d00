import { AsyncLocalStorage } from 'node:async_hooks'
import type { TestContext } from 'vitest'

const running = new AsyncLocalStorage<{ readonly context: TestContext; ended: boolean }>()

/** Runs a test. What it calls, now or later, belongs to it, also when other tests run at the same time (`it.concurrent`). */
export async function runTest(context: TestContext, test: () => Promise<void>): Promise<void> {
  const state = { context, ended: false }
  try {
    await running.run(state, test)
  } finally {
    state.ended = true
  }
}

/** The test that called this; undefined in `beforeAll`, when the test has ended, and in a program that is no test. */
export function runningTest(): TestContext | undefined {
  const state = running.getStore()
  return state?.ended === false ? state.context : undefined
}

/**
 * How long (ms) a test waits for what must happen. It ends what hangs, and promises nothing: a machine with other work to do may take
 * ten times as long as an idle one.
 */
export const PATIENCE = 60_000
