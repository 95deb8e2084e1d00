import { expect, it } from 'vitest'
import { REFUSAL_REASONS } from '../../src/record/tally.ts'
import { rawConnection } from '../support/raw.ts'
import { startSidecar } from '../support/sidecar.ts'

it('H149 every kind of refusal is a series from the start, and counts what was refused', async () => {
  const sidecar = await startSidecar({ config: { limits: { api: { requests: 3 } } } })
  const before = await sidecar.metrics()
  for (const reason of REFUSAL_REASONS)
    expect(before).toContain(`postern_refusals_total{reason="${reason}"} 0\n`)

  for (let i = 0; i < 5; i += 1) await sidecar.request()
  await sidecar.postToken({ grant_type: 'password', password: 'wrong' })
  await sidecar.postToken({ grant_type: 'other' })
  await sidecar.request({ path: '/oauth/token' })
  const figures = await sidecar.figures()
  const counted = REFUSAL_REASONS.flatMap((reason) => {
    const count = figures('postern_refusals_total', { reason })
    return count === 0 ? [] : [[reason, count]]
  })
  expect(Object.fromEntries(counted)).toEqual({
    unauthorized: 3,
    rate_limited: 2,
    invalid_grant: 1,
    unsupported_grant_type: 1,
    method_not_allowed: 1,
  })
  expect(figures('postern_rate_limited_total')).toBe(2)
  expect(await sidecar.metric('postern_refusals_total')).toBe(8)
})

it('H149 a gate that only observes counts what it would refuse, as postern_rate_limited_total does', async () => {
  const sidecar = await startSidecar({ config: { enforce: false, limits: { api: { requests: 1 } } } })
  for (let i = 0; i < 3; i += 1) expect((await sidecar.request()).status).toBe(200)
  const figures = await sidecar.figures()
  expect(figures('postern_refusals_total', { reason: 'rate_limited' })).toBe(2)
  expect(figures('postern_rate_limited_total')).toBe(2)
  expect(figures('postern_refusals_total', { reason: 'unauthorized' })).toBe(1)
})

it('H149 bytes that are no valid request are counted, too', async () => {
  const sidecar = await startSidecar({ transport: 'tls', bounds: { listen: { maxHeaderSize: 1024 } } })
  const plain = sidecar.url.replace('https:', 'http:')
  for (const [url, bytes] of [
    [sidecar.url, 'no HTTP\r\n\r\n'],
    [sidecar.url, 'GET / HTTP/1.1\r\nHost: a\r\nno field\r\n\r\n'],
    [sidecar.url, `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(2_000)}\r\n\r\n`],
    [plain, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ] as const) {
    const peer = await rawConnection(url)
    peer.write(bytes)
    expect(await peer.closed).toMatch(/^HTTP\/1\.1 400 /)
  }
  const figures = await sidecar.figures()
  expect(figures('postern_refusals_total', { reason: 'malformed' })).toBe(3)
  expect(figures('postern_refusals_total', { reason: 'header_too_large' })).toBe(1)
  expect(figures('postern_refusals_total')).toBe(4)
})
