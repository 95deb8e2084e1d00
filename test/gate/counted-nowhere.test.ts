import { expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { limitsOf } from '../support/expectations.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

describeProtocols('Clients that may not connect', (transport) => {
  it.each(['device', 'client'])(
    'H215 a denied client behind a trusted proxy counts in no window, per %s, of the API or of /oauth/token',
    async (per) => {
      const limit = { requests: 3, window: '60s', per }
      const sidecar = await startSidecar({
        clock: stillClock(),
        transport,
        config: {
          listen: { trusted_proxies: ['127.0.0.1'], allow: ['192.0.2.1'] },
          limits: { api: limit, oauth: limit },
        },
      })
      const ask = (client: string, path: string) =>
        sidecar.request({ method: 'POST', path, fields: ['X-Forwarded-For', client] })
      for (const path of ['/', '/oauth/token']) {
        for (let i = 0; i < 5; i += 1) {
          const denied = await ask('192.0.2.66', path)
          expect(denied.json().error_description).toBe('This address may not use this service.')
          expect(limitsOf(denied)).toMatchObject({ limit: 3, remaining: 3 })
        }
        expect(limitsOf(await ask('192.0.2.1', path))).toMatchObject({ remaining: 2 })
      }
      expect(await sidecar.metric('postern_rate_windows')).toBe(2)
      expect(await sidecar.metric('postern_rate_limited_total')).toBe(0)
    },
  )
})
