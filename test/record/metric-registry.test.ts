import { join } from 'node:path'
import { Gauge, Registry } from 'prom-client'
import { expect, it, vi } from 'vitest'
import { createMetricRegistry } from '../../src/record/metric-registry.ts'
import { nextTurn, turnOfLoop } from '../../src/system/clock.ts'
import { readTree } from '../support/source-tree.ts'

it('a bucket of a histogram counts the values up to its bound, in each series', async () => {
  const registry = createMetricRegistry()
  const histogram = registry.histogram('wait_seconds', 'How long.', ['endpoint'])
  const api = histogram('api')
  histogram('oauth')
  for (const seconds of [0, 0.001, 0.0011, 30, 31]) api.observe(seconds)
  const lines = (await registry.text()).split('\n')
  expect(lines.slice(0, 2)).toEqual([
    '# HELP postern_wait_seconds How long.',
    '# TYPE postern_wait_seconds histogram',
  ])
  expect(lines).toContain('postern_wait_seconds_bucket{le="0.001",endpoint="api"} 2')
  expect(lines).toContain('postern_wait_seconds_bucket{le="0.0025",endpoint="api"} 3')
  expect(lines).toContain('postern_wait_seconds_bucket{le="10",endpoint="api"} 3')
  expect(lines).toContain('postern_wait_seconds_bucket{le="30",endpoint="api"} 4')
  expect(lines).toContain('postern_wait_seconds_bucket{le="+Inf",endpoint="api"} 5')
  expect(lines).toContain('postern_wait_seconds_sum{endpoint="api"} 61.0021')
  expect(lines).toContain('postern_wait_seconds_count{endpoint="api"} 5')
  expect(lines).toContain('postern_wait_seconds_count{endpoint="oauth"} 0')
})

it('the bounds of the buckets go from a cached response of a LAN device to the response deadline', async () => {
  const registry = createMetricRegistry()
  registry.histogram('wait_seconds', 'How long.')()
  expect([...(await registry.text()).matchAll(/le="([^"]+)"/g)].map(([, bound]) => bound).join(' ')).toBe(
    '0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 +Inf',
  )
})

it('a histogram without labels has only the bounds as labels', async () => {
  const registry = createMetricRegistry()
  registry.histogram('wait_seconds', 'How long.')().observe(0.3)
  expect(await registry.text()).toContain('postern_wait_seconds_bucket{le="0.5"} 1\n')
  expect(await registry.text()).toContain('postern_wait_seconds_sum 0.3\npostern_wait_seconds_count 1\n')
})

it('a scrape does not reset the counters, and the value of a label is quoted', async () => {
  const registry = createMetricRegistry()
  registry.counter('tries_total', 'Tries.', ['route', 'result'])('/a"b\\', 'good').add(2)
  for (const _time of ['first', 'second'])
    expect(await registry.text()).toContain('postern_tries_total{route="/a\\"b\\\\",result="good"} 2\n')
})

it('a family has a sample for each series that is made, with its last value', async () => {
  const registry = createMetricRegistry()
  const tries = registry.counter('tries_total', 'Tries.')
  const up = registry.gauge('up', 'Whether it is up.')
  let kept: number | undefined = 2
  registry.readGauge('kept', 'Kept.', () => kept)
  const samples = async (): Promise<readonly string[]> =>
    (await registry.text()).split('\n').filter((line) => line.startsWith('postern_'))
  expect(await samples()).toEqual(['postern_kept 2'])
  tries()
  up().value = 1
  expect(await samples()).toEqual(['postern_tries_total 0', 'postern_up 1', 'postern_kept 2'])
  tries().add(3)
  up().value = -1
  kept = undefined
  expect(await samples()).toEqual(['postern_tries_total 3', 'postern_up -1'])
})

it('a name that is taken or malformed is refused when the family is made', () => {
  const registry = createMetricRegistry()
  registry.counter('tries_total', 'Tries.')
  expect(() => registry.gauge('tries_total', 'Tries.')).toThrow('already been registered')
  expect(() => registry.gauge('tries-now', 'Tries.')).toThrow('Invalid metric name')
  expect(() => registry.histogram('tries_seconds', 'Tries.', ['end-point'])).toThrow('Invalid label name')
  expect(() => registry.histogram('tries_seconds', 'Tries.', ['le'])).toThrow('reserved label')
})

it('prom-client writes the text, also of a metric that another registry holds', async () => {
  const written = vi.spyOn(Registry.prototype, 'getMetricsAsString' as 'metrics')
  const shared = new Registry()
  new Gauge({ name: 'process_things', help: 'Things.', registers: [shared] }).set(3)
  const registry = createMetricRegistry(shared)
  registry.readGauge('missing', 'No value.', () => undefined)
  registry.histogram('wait_seconds', 'How long.')
  expect(await registry.text()).toBe(
    '# HELP process_things Things.\n# TYPE process_things gauge\nprocess_things 3\n\n' +
      '# HELP postern_missing No value.\n# TYPE postern_missing gauge\n\n' +
      '# HELP postern_wait_seconds How long.\n# TYPE postern_wait_seconds histogram\n',
  )
  expect(written).toHaveBeenCalledTimes(3)
  written.mockRestore()
})

it('C26 twenty readers at once get one text, written a few families in a turn of the event loop', async () => {
  const turns: number[] = []
  const written = vi.spyOn(Registry.prototype, 'getSingleMetricAsString').mockImplementation(async (name) => {
    turns.push(turnOfLoop())
    return name
  })
  const registry = createMetricRegistry()
  for (let i = 0; i < 50; i += 1) registry.gauge(`things_${i}`, 'Things.')
  const texts = await Promise.all(Array.from({ length: 20 }, () => registry.text()))
  expect(new Set(texts).size).toBe(1)
  expect(turns).toHaveLength(50)
  const perTurn = [...Map.groupBy(turns, (turn) => turn).values()].map(({ length }) => length)
  expect(Math.max(...perTurn)).toBeLessThanOrEqual(8)
  written.mockRestore()
})

it('a reader that comes while a text is written gets a later one, which knows what happened before it came', async () => {
  const registry = createMetricRegistry()
  const tries = registry.counter('tries_total', 'Tries.')()
  const first = registry.text()
  await nextTurn()
  tries.add(1)
  const second = registry.text()
  expect(await second).toContain('postern_tries_total 1')
  await first
  tries.add(1)
  expect(await registry.text()).toContain('postern_tries_total 2')
})

it('a text that fails fails for its readers only', async () => {
  const registry = createMetricRegistry()
  let broken = true
  registry.readGauge('things', 'Things.', () => {
    if (broken) throw new Error('no things')
    return 3
  })
  await expect(registry.text()).rejects.toThrow('no things')
  broken = false
  expect(await registry.text()).toContain('postern_things 3')
})

it('no exposition text is written in src/', () => {
  const source = readTree(join(import.meta.dirname, '../..'), 'src')
  const writing = [...source].filter(([, text]) => /# ?(?:HELP|TYPE)\b|_bucket\{|\{le=/.test(text))
  expect(writing.map(([path]) => path)).toEqual([])
})
