import { expect, it } from 'vitest'
import { createMetrics } from '../../src/record/metrics.ts'

it('postern_upstream_up follows every reporter of a service, because all of them tell the same object', async () => {
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
