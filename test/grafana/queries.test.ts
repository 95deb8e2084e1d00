import { beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/redis.ts'
import { PATIENCE } from '../support/running-test.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { type DashboardQuery, filledIn, queriesOf, readDashboard } from './dashboard.ts'
import { type Prometheus, startPrometheus } from './prometheus.ts'
import { type Scene, startScene } from './scene.ts'

/** What Grafana makes of `$__rate_interval` for scrapes of one second. */
const RATE_INTERVAL = '4s'

/** Queries whose value stays, and why. They only have to return data. */
const STILL: Readonly<Record<string, string>> = {
  'mark: Reloads': 'a mark comes and goes, and its value is always one reload',
  'At a glance: Sidecars: Version': 'no sidecar is upgraded',
  'The process: Open files: B': 'the limit of the system',
  'Connections and TLS: Memory held for clients: B': 'the limit that the sidecar has from its start',
  'Connections and TLS: Given up for memory: A':
    'no client holds its share: test/contract/c26-memory.test.ts makes it so',
  'The device: Requests at the device: D': 'no device breaks: test/measure makes one',
  'Tokens: Tokens that a restart would lose: A': 'its disk is not full: test/tokens makes it so',
}

/** Rows that are empty without a shared store. */
const FLEET_ONLY = /^The shared store/

let scene: Scene
let prometheus: Prometheus

beforeAll(async () => {
  if (!isInstalled('prometheus') || !isInstalled('redis-server')) return
  scene = await startScene()
  prometheus = await startPrometheus([scene.alone, ...scene.fleet])
  // What happened before the first scrape does not move.
  await until(async () => (await prometheus.courses('up == 1')).length === 3, 60_000)
})

const courses = (
  { expr }: DashboardQuery,
  instances: readonly string[],
): Promise<readonly (readonly number[])[]> => prometheus.courses(filledIn(expr, instances, RATE_INTERVAL))

async function isReady(query: DashboardQuery, instances: readonly string[]): Promise<boolean> {
  const found = await courses(query, instances)
  if (query.name in STILL) return found.length > 0
  return found.some((values) => new Set(values.filter(Number.isFinite)).size > 1)
}

describe('the queries of the dashboard, at a Prometheus that scrapes sidecars', () => {
  it('H164 all return data, and move with the traffic', async () => {
    needs('prometheus')
    needs('redis-server')
    const all = [scene.alone, ...scene.fleet]
    let waiting = queriesOf(readDashboard())
    const deadline = Date.now() + 4 * PATIENCE
    while (waiting.length > 0 && Date.now() < deadline) {
      await scene.round(prometheus.scrapedTwice)
      const ready = await Promise.all(waiting.map((query) => isReady(query, all)))
      waiting = waiting.filter((_, index) => !ready[index])
    }
    expect(waiting.map(({ name }) => name)).toEqual([])

    const instances = await prometheus.labelValues('instance', 'postern_build_info')
    expect(instances.toSorted()).toEqual(all.toSorted())
    for (const query of queriesOf(readDashboard())) {
      const found = await courses(query, [scene.alone])
      expect([query.name, found.length > 0]).toEqual([query.name, !FLEET_ONLY.test(query.name)])
    }
  })
})
