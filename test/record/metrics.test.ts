import { expect, it } from 'vitest'
import { createMetrics } from '../../src/record/metrics.ts'

/** Metrics, and their samples by name and labels. */
function start() {
  const metrics = createMetrics({ version: '1.2.3', node: 'v26.0.0' })
  const samples = async (): Promise<Map<string, number>> => {
    const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith('postern_'))
    return new Map(lines.map((line) => [line.replace(/ \S+$/, ''), Number(line.replace(/^.* /, ''))]))
  }
  return { metrics, samples }
}

/** Every sample of a family whose name begins so. */
const ofFamily = (samples: ReadonlyMap<string, number>, begin: string): Record<string, number> =>
  Object.fromEntries([...samples].filter(([name]) => name.startsWith(begin)))

it('each thing that can happen has a series of 0 from the start, and then counts', async () => {
  const { metrics, samples } = start()
  metrics.storeOpened('file', ['open', 'flush'])
  const families = ['postern_shed_total', 'postern_store_errors_total', 'postern_config_reloads_total']
  const before = await samples()
  expect(families.map((family) => ofFamily(before, family))).toEqual([
    Object.fromEntries(
      ['shares', 'grants'].flatMap((stage) =>
        ['connection', 'stream', 'request'].map((what) => [
          `postern_shed_total{stage="${stage}",what="${what}"}`,
          0,
        ]),
      ),
    ),
    {
      'postern_store_errors_total{store="file",operation="open"}': 0,
      'postern_store_errors_total{store="file",operation="flush"}': 0,
    },
    {
      'postern_config_reloads_total{result="success"}': 0,
      'postern_config_reloads_total{result="failure"}': 0,
    },
  ])
  metrics.shed('grants', 'stream')
  metrics.shed('streams', 'streams')
  metrics.storeFailed('file', 'flush')
  metrics.configReloaded('failure')
  const after = await samples()
  expect(
    [...after].filter(
      ([name, value]) => value !== before.get(name) && families.some((family) => name.startsWith(family)),
    ),
  ).toEqual([
    ['postern_shed_total{stage="grants",what="stream"}', 1],
    ['postern_shed_total{stage="streams",what="streams"}', 1],
    ['postern_store_errors_total{store="file",operation="flush"}', 1],
    ['postern_config_reloads_total{result="failure"}', 1],
  ])
  expect(after.get('postern_build_info{version="1.2.3",node="v26.0.0"}')).toBe(1)
})

it('what a scrape asks has no sample before there is an answer, and then the last one', async () => {
  const { metrics, samples } = start()
  const asked = async () => {
    const found = await samples()
    return ['memory_', 'certificate_', 'tokens', 'rate_windows', 'guessing_'].map((family) =>
      ofFamily(found, `postern_${family}`),
    )
  }
  const tokens = (access: number, refresh: number, evicted = { access: 0, refresh: 0 }) => ({
    'postern_tokens{kind="access"}': access,
    'postern_tokens{kind="refresh"}': refresh,
    'postern_tokens_evicted_total{kind="access"}': evicted.access,
    'postern_tokens_evicted_total{kind="refresh"}': evicted.refresh,
  })
  expect((await asked()).slice(0, 3)).toEqual([{}, {}, tokens(0, 0)])
  metrics.tokensEvicted('refresh', 2)
  metrics.certificateServed(1_700_000_000_500, 1_800_000_000_000)
  const held = { sums: { bodies: 5, tunnels: 0 }, limit: 1024 }
  metrics.setScrapeSources({
    memory: held,
    tokens: () => ({ access: 3, refresh: 1 }),
    unsaved: () => 2,
    issued: () => 4,
    guessing: () => 7,
    issuedEnds: () => 1_900_000_000_000,
    windows: (endpoint) => endpoint.length,
    upstream: () => ({ inFlight: 0, queued: 0, tolerant: false, limit: 0 }),
  })
  expect(await asked()).toEqual([
    {
      'postern_memory_bytes{of="bodies"}': 5,
      'postern_memory_bytes{of="tunnels"}': 0,
      postern_memory_limit_bytes: 1024,
    },
    {
      postern_certificate_not_before_timestamp_seconds: 1_700_000_000.5,
      postern_certificate_expiry_timestamp_seconds: 1_800_000_000,
    },
    { ...tokens(3, 1, { access: 0, refresh: 2 }), postern_tokens_unsaved: 2 },
    {
      'postern_rate_windows{endpoint="api"}': 3,
      'postern_rate_windows{endpoint="oauth"}': 5,
    },
    { postern_guessing_addresses: 7 },
  ])
  held.sums.bodies = 0
  expect((await asked())[0]).toMatchObject({ 'postern_memory_bytes{of="bodies"}': 0 })
})

it('the sums that the live page reads are those of the families', async () => {
  const { metrics, samples } = start()
  const { connections, totals } = metrics
  connections.connection('h2', 1)
  connections.connection('http/1.1', 1)
  connections.connection('h2', -1)
  connections.refused('memory')
  expect(totals()).toMatchObject({ connections: 1, tunnels: 0 })
  expect(ofFamily(await samples(), 'postern_connections')).toMatchObject({
    'postern_connections{protocol="http/1.1"}': 1,
    'postern_connections{protocol="h2"}': 0,
    'postern_connections_refused_total{reason="memory"}': 1,
    'postern_connections_refused_total{reason="not_allowed"}': 0,
  })
})
