import { PerformanceObserver } from 'node:perf_hooks'
import { expect, it, vi } from 'vitest'
import { createMetrics } from '../../src/record/metrics.ts'

it('many sidecars of a process measure it once, and each of them reports it', async () => {
  const observe = vi.spyOn(PerformanceObserver.prototype, 'observe')
  const sidecars = Array.from({ length: 10 }, () => createMetrics({ version: '0', node: '0' }))
  // None, if a sidecar of an earlier test in this process measures it already.
  expect(observe.mock.calls.length).toBeLessThanOrEqual(1)
  for (const metrics of sidecars) {
    const text = await metrics.text()
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m)
    expect(text).toMatch(/^process_resident_memory_bytes \d/m)
  }
  observe.mockRestore()
})
