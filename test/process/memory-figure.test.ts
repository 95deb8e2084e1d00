import { expect, it } from 'vitest'
import { prepareSite } from './serve.ts'

const FIGURE = /clients may hold (\d+) MiB/

it('H248 check, the start and status say the same figure, also where the unit bounds the sidecar alone', async () => {
  const site = await prepareSite()
  const sidecar = await site.serve({ env: { NODE_OPTIONS: '--max-old-space-size=200' } })
  const { plan } = await sidecar.waitForLog('memory for clients')
  const [, started] = FIGURE.exec(String(plan)) ?? []
  // What V8 adds for the young generation differs by version.
  expect(Number(started)).toBeLessThan(300)
  const [check, status] = await Promise.all([site.postern('check'), site.postern('status')])
  expect(FIGURE.exec(check.stdout)?.[1]).toBe(started)
  expect(FIGURE.exec(status.stdout)?.[1]).toBe(started)
})

it('H248 outside a unit, check and the start say at most 512 MiB, and a number is taken as it is', async () => {
  const site = await prepareSite()
  const before = await site.postern('check')
  const sidecar = await site.serveHere()
  const { limit, plan } = await sidecar.waitForLog('memory for clients')
  expect(Number(limit)).toBeLessThanOrEqual(512 * 1024 ** 2)
  expect(before.stdout).toContain(FIGURE.exec(String(plan))?.[0])
  site.configure({ listen: { memory: '600MiB' } })
  expect((await site.postern('check')).stdout).toContain('clients may hold 600 MiB, as listen.memory says')
})
