import { expect, it } from 'vitest'
import { readBody, startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'
import { NAVIGATION } from './browsing.ts'

const NAME = 'Strict-Transport-Security'

describeTransports(
  'H318 browser.hsts',
  (transport) => {
    it('H318 is on every response over TLS, once, in place of that of the device', async () => {
      const device = await startDevice(async (request, response) => {
        await readBody(request)
        response.setHeader(NAME, 'max-age=1; includeSubDomains')
        response.end('ok')
      })
      const sidecar = await startSidecar({ transport, device, config: { browser: { hsts: '365d' } } })
      const token = await sidecar.token()
      for (const response of [
        await sidecar.request({ token }),
        await sidecar.request(),
        await sidecar.request({ fields: NAVIGATION }),
        await sidecar.request({ path: '/oauth/token' }),
        await sidecar.postToken({ grant_type: 'password', password: 'wrong' }),
      ])
        expect(response.values(NAME), `${response.status}`).toEqual(['max-age=31536000'])
    })

    it('H318 without the key the device has its own', async () => {
      const device = await startDevice((_, response) => void response.setHeader(NAME, 'max-age=7').end('ok'))
      const sidecar = await startSidecar({ transport, device })
      expect((await sidecar.request()).values(NAME)).toEqual([])
      expect((await sidecar.request({ token: await sidecar.token() })).values(NAME)).toEqual(['max-age=7'])
    })
  },
  ['tls', 'h2'],
)
