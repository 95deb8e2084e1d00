import { expect, it } from 'vitest'
import { startSidecar } from '../support/sidecar.ts'

it('H237 bytes of bodies and the durations of requests are counted, by endpoint', async () => {
  const sidecar = await startSidecar()
  const token = await sidecar.token()
  const before = await sidecar.figures()
  const response = await sidecar.request({ path: '/a', method: 'POST', body: 'twelve bytes', token })
  expect(response.status).toBe(200)
  const endpoint = { endpoint: 'api' }
  const grown = async (name: string, labels = {}) =>
    (await sidecar.metric(name, labels)) - before(name, labels)
  await expect.poll(() => grown('postern_request_duration_seconds_count', endpoint)).toBe(1)
  expect(await grown('postern_request_bytes_total')).toBe(12)
  expect(await grown('postern_response_bytes_total')).toBe(Buffer.byteLength(response.text))
})

it('H237 tokens that are dropped because the store is full are counted by kind', async () => {
  const sidecar = await startSidecar({ config: { tokens: { capacity: 2 } } })
  await sidecar.grant()
  await sidecar.grant()
  for (const kind of ['access', 'refresh'])
    expect(await sidecar.metric('postern_tokens_evicted_total', { kind }), kind).toBe(1)
})
