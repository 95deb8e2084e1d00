import { expect, it } from 'vitest'
import { flood } from '../support/autocannon.ts'
import { stillClock } from '../support/clock.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

describeTransports(
  'A flood',
  (transport) => {
    it('H125 gets exactly the limit and a 429 for every other request, and a client within its limits is served beside it', async () => {
      const sidecar = await startSidecar({ transport, documentedLimits: true, clock: stillClock() })
      const authorization = `Bearer ${await sidecar.token()}`
      const statuses = new Map<number, number>()
      const flooding = flood({
        url: sidecar.url,
        requests: [{ method: 'GET', path: '/', headers: { authorization } }],
        connections: 20,
        pipelining: 1,
        until: { requestsEach: 20 },
        onResponse: (_, { status }) => statuses.set(status, (statuses.get(status) ?? 0) + 1),
      })
      const beside: number[] = []
      for (let i = 0; i < 20; i++) beside.push((await sidecar.postToken({ grant_type: 'password' })).status)
      const report = await flooding
      expect(report.faults).toEqual([])
      expect(Object.fromEntries(statuses)).toEqual({ 200: 60, 429: report.responses - 60 })
      expect(beside).toEqual(Array(20).fill(400))
      expect(sidecar.device.requests).toHaveLength(60)
    })
  },
  ['http1', 'tls'],
)
