import { PerformanceObserver } from 'node:perf_hooks'
import { expect, it, vi } from 'vitest'
import { createMetricRegistry } from '../../src/record/metric-registry.ts'

it('many sidecars of a process measure it once, and each of them reports it', async () => {
  const observe = vi.spyOn(PerformanceObserver.prototype, 'observe')
  const registries = Array.from({ length: 10 }, createMetricRegistry)
  // None, if a sidecar of an earlier test in this process measures it already.
  expect(observe.mock.calls.length).toBeLessThanOrEqual(1)
  for (const registry of registries) {
    expect(await registry.text()).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m)
    const names = (await registry.snapshot()).map(({ name }) => name)
    expect(names).toContain('process_resident_memory_bytes')
  }
  observe.mockRestore()
})
