import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    // Two cores is what CI has: more workers only add noise to the tests that watch the clock.
    maxWorkers: 2,
  },
}) as object
