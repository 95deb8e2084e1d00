import https from 'node:https'
import { ResourceOwnerPassword } from 'simple-oauth2'
import { expect, it } from 'vitest'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

describeTransports(
  'simple-oauth2',
  (transport) => {
    async function configure(
      sidecar: TestSidecar,
      method: 'header' | 'body',
    ): Promise<ResourceOwnerPassword> {
      const agent = transport === 'tls' ? new https.Agent({ ca: await sidecar.certificate() }) : undefined
      return new ResourceOwnerPassword({
        client: { id: 'any-client', secret: 'any secret: %&+' },
        auth: { tokenHost: sidecar.url },
        options: { authorizationMethod: method },
        ...(agent === undefined ? {} : { http: { agent } }),
      })
    }

    it.each(['header', 'body'] as const)(
      'gets tokens by password and refreshes, with its credentials in the %s',
      async (method) => {
        const sidecar = await startSidecar({ transport })
        const grant = await configure(sidecar, method)
        const first = await grant.getToken({ username: 'admin', password: PASSWORD, scope: ['a', 'b'] })
        expect(first.expired()).toBe(false)
        expect(first.expired(3700)).toBe(true)
        const second = await first.refresh()
        expect(second.token.access_token).not.toBe(first.token.access_token)
        for (const { token } of [first, second]) {
          const response = await sidecar.request({ token: String(token.access_token) })
          expect(response.text).toBe('from the device')
        }
      },
    )

    it('reads the error of each refusal', async () => {
      const sidecar = await startSidecar({ transport })
      const grant = await configure(sidecar, 'header')
      await expect(grant.getToken({ username: 'admin', password: 'wrong' })).rejects.toMatchObject({
        output: { statusCode: 400 },
        data: { payload: { error: 'invalid_grant' } },
      })
      const stale = grant.createToken({ access_token: 'x', refresh_token: 'unknown', expires_in: 0 })
      await expect(stale.refresh()).rejects.toMatchObject({ data: { payload: { error: 'invalid_grant' } } })
    })
  },
  ['http1', 'tls'],
)
