import { expect, it } from 'vitest'
import { createMetricRegistry } from '../../src/record/metric-registry.ts'
import { createTally } from '../../src/record/tally.ts'

it('H79 requests are counted by endpoint, method and status, those of unknown methods together', async () => {
  const registry = createMetricRegistry()
  const count = createTally(
    registry.counter('requests_total', 'Requests.', ['endpoint', 'method', 'code']),
    'api',
  )
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'get'])
    for (const status of [200, 200, 201, 451]) count(method, status)
  const lines = (await registry.text()).split('\n').filter((line) => line.startsWith('postern_'))
  const expected = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'other'].flatMap((method) =>
    [200, 201, 451].map((code) => {
      const times = (code === 200 ? 2 : 1) * (method === 'other' ? 2 : 1)
      return `postern_requests_total{endpoint="api",method="${method}",code="${code}"} ${times}`
    }),
  )
  expect(lines).toEqual(expected)
})
