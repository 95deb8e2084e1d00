import { PerformanceObserver } from 'node:perf_hooks'
import { expect, it, vi } from 'vitest'
import { createMetrics } from '../../src/record/metrics.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { standStill } from '../support/processes.ts'

it('many sidecars of a process measure it once, and each of them reports it', async () => {
  const observe = vi.spyOn(PerformanceObserver.prototype, 'observe')
  const sidecars = Array.from({ length: 10 }, () => createMetrics({ version: '0', node: '0' }))
  // None, if a sidecar of an earlier test in this process measures it already.
  expect(observe.mock.calls.length).toBeLessThanOrEqual(1)
  for (const metrics of sidecars) {
    const text = await metrics.text()
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \d/m)
    expect(text).toMatch(/^process_resident_memory_bytes \d/m)
    expect(text.match(/^# TYPE \S+_total (?!counter$).*/gm)).toBe(null)
  }
  observe.mockRestore()
})

it('the figures of the event loop are the turns since the last scrape: a turn that lasts shows in one of them', async () => {
  const metrics = createMetrics({ version: '0', node: '0' })
  const longest = async (): Promise<number> =>
    Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(await metrics.text())?.[1])
  const begun = performance.now()
  await nextTurn()
  await nextTurn()
  await metrics.text()
  await nextTurn()
  standStill(200)
  await nextTurn()
  await nextTurn()
  const first = await longest()
  expect(first).toBeGreaterThanOrEqual(0.2)
  expect(first).toBeLessThanOrEqual((performance.now() - begun) / 1_000)
  await nextTurn()
  await nextTurn()
  // Other turns, measured to the nanosecond.
  expect(await longest()).not.toBe(first)
  const next = await metrics.text()
  expect(next).toMatch(/^nodejs_eventloop_lag_min_seconds \d/m)
  expect(next.match(/^# TYPE nodejs_eventloop_lag_\w+ gauge$/gm)).toHaveLength(8)
})
