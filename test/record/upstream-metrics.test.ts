import { expect, it } from 'vitest'
import { createMetrics } from '../../src/record/metrics.ts'

it('postern_upstream_up shows the latest report about a service, whichever part reports it', async () => {
  const metrics = createMetrics({ version: '0', node: '0' })
  const requests = metrics.upstream(undefined)
  const logins = metrics.upstream(undefined)
  const up = async (): Promise<string | undefined> =>
    /^postern_upstream_up (\d)$/m.exec(await metrics.text())?.[1]
  requests.up(true)
  expect(await up()).toBe('1')
  logins.failed('connection_refused')
  expect(await up()).toBe('0')
  requests.up(true)
  expect(await up()).toBe('1')
})
