import { beforeAll, describe, expect, it } from 'vitest'
import { expectError } from '../support/expectations.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

describeProtocols('C19 Status codes', (transport) => {
  describe.each(['contract', 'http'] as const)('status_codes: %s', (mode) => {
    const pick = (contract: number, http: number): number => (mode === 'contract' ? contract : http)
    let sidecar: TestSidecar
    let token: string
    beforeAll(async () => {
      sidecar = await startSidecar({ transport, config: { status_codes: mode } })
      token = await sidecar.token()
    })

    it('C19 a wrong method on /oauth/token is 400 or 405, with Allow: POST', async () => {
      for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'post']) {
        const response = await sidecar.request({ method, path: '/oauth/token', token })
        expectError(response, pick(400, 405), 'invalid_request')
        expect(response.header('Allow'), method).toBe('POST')
      }
      const head = await sidecar.request({ method: 'HEAD', path: '/oauth/token' })
      expect([head.status, head.header('Allow'), head.body.length]).toEqual([pick(400, 405), 'POST', 0])
      expect(sidecar.device.byteCount).toBe(0)
    })

    it('C19 a content type other than a form is 400 or 415', async () => {
      const response = await sidecar.request({
        path: '/oauth/token',
        fields: ['Content-Type', 'application/json'],
        body: '{}',
      })
      expectError(response, pick(400, 415), 'invalid_request')
    })

    it('C19 a body over 8 KiB is 400 or 413', async () => {
      const body = `x=${'x'.repeat(8192)}`
      expectError(await sidecar.postToken(body), pick(400, 413), 'invalid_request')
      expectError(
        await sidecar.request({
          path: '/oauth/token',
          fields: ['Content-Type', 'application/x-www-form-urlencoded'],
          body: [body.slice(0, 5000), body.slice(5000)],
        }),
        pick(400, 413),
        'invalid_request',
      )
    })

    it('C19 an OAuth error is 400 and a missing token 401 in either mode', async () => {
      expectError(await sidecar.postToken('x=1'), 400, 'invalid_request')
      expectError(await sidecar.postToken({ grant_type: 'password', password: 'x' }), 400, 'invalid_grant')
      expectError(await sidecar.postToken({ grant_type: 'x' }), 400, 'unsupported_grant_type')
      expectError(await sidecar.request(), 401, 'invalid_token')
    })

    it('C19 a request over the limit is 429 in either mode', async () => {
      const config = { status_codes: mode, limits: { api: { requests: 1 } } }
      const limited = await startSidecar({ transport, config })
      await limited.request()
      expectError(await limited.request(), 429, 'rate_limited')
    })

    it("C19 the device's response passes through unchanged, whatever its status", async () => {
      sidecar.device.handle((request, response) => {
        response.writeHead(Number(request.url?.slice(1)), 'As I Say', { 'X-Own': 'yes' })
        response.end('its own words')
      })
      for (const status of [
        200, 201, 203, 299, 302, 400, 401, 403, 404, 405, 418, 429, 451, 500, 502, 503, 504, 599,
      ]) {
        const response = await sidecar.request({ path: `/${status}`, token })
        expect([response.status, response.text, response.header('X-Own')]).toEqual([
          status,
          'its own words',
          'yes',
        ])
        if (transport !== 'h2') expect(response.reason).toBe('As I Say')
        expect(response.values('Proxy-Status')).toEqual([])
      }
      for (const status of [204, 304]) {
        const response = await sidecar.request({ path: `/${status}`, token })
        expect([response.status, response.text, response.header('X-Own')]).toEqual([status, '', 'yes'])
      }
    })
  })
})
