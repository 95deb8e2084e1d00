import { beforeAll, expect, it } from 'vitest'
import { readBody, startDevice } from '../support/device.ts'
import { type ErrorCode, expectError } from '../support/expectations.ts'
import type { Response } from '../support/message.ts'
import { startCannedDevice } from '../support/raw-device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

// `c19-device-faults.test.ts` has the failures of the device, `c25-in-flight.test.ts` a full queue.
describeProtocols('C18 Errors', (transport) => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  it('C18 a refused HEAD gets the fields of a refused GET and no body', async () => {
    const get = await sidecar.request({ method: 'GET' })
    const head = await sidecar.request({ method: 'HEAD' })
    expect(head.status).toBe(401)
    expect(head.body).toHaveLength(0)
    for (const name of ['Content-Type', 'Content-Length', 'WWW-Authenticate', 'Cache-Control']) {
      expect(head.header(name), name).toBe(get.header(name))
    }
  })

  it('C18 an error is plain JSON whatever Accept-Encoding says, and whatever Accept says but HTML', async () => {
    for (const accept of [
      'image/png',
      'application/xml',
      '*/*',
      'text/html;q=0.1, */*',
      'application/json, text/html',
    ]) {
      const response = await sidecar.request({ fields: ['Accept', accept, 'Accept-Encoding', 'gzip, br'] })
      expectError(response, 401, 'invalid_token')
      expect(response.header('Content-Encoding')).toBeUndefined()
    }
    const page = await sidecar.request({ fields: ['Accept', 'text/html', 'Accept-Encoding', 'gzip, br'] })
    expect([page.status, page.header('Content-Type')]).toEqual([401, 'text/html; charset=utf-8'])
    expect(page.header('Content-Encoding')).toBeUndefined()
  })

  it('C18 an error repeats nothing that the client sent', async () => {
    const mark = 'zqx7'
    const responses = [
      await sidecar.request({ path: `/${mark}?${mark}`, token: mark, fields: ['X-Mark', mark] }),
      await sidecar.postToken({ grant_type: mark, [mark]: mark }),
      await sidecar.postToken(`${mark}=1&${mark}=2`),
      await sidecar.postToken({ grant_type: 'password', password: mark }),
      await sidecar.postToken('', { fields: ['X-Mark', mark], path: `/oauth/token?${mark}`, method: 'PUT' }),
    ]
    for (const response of responses) expect(response.text + response.fields.join(' ')).not.toContain(mark)
  })

  it('C18 no field of an error names the software or its version', async () => {
    for (const response of [await sidecar.request(), await sidecar.postToken('x')]) {
      expect(response.values('Server')).toEqual([])
      expect(response.values('X-Powered-By')).toEqual([])
      expect(response.fields.join(' ')).not.toMatch(/node|undici|\d+\.\d+\.\d+/i)
    }
  })

  it('C18 every error code of the gate and the token endpoint has the same JSON shape', async () => {
    const sidecar = await startSidecar({ transport, config: { limits: { api: { requests: 2 } } } })
    const expected: readonly (readonly [Promise<Response>, number, ErrorCode])[] = [
      [sidecar.postToken('x=%'), 400, 'invalid_request'],
      [sidecar.postToken({ grant_type: 'password', password: 'wrong' }), 400, 'invalid_grant'],
      [sidecar.postToken({ grant_type: 'magic' }), 400, 'unsupported_grant_type'],
      [sidecar.request(), 401, 'invalid_token'],
    ]
    for (const [response, status, code] of expected) expectError(await response, status, code)
    expectError(await sidecar.request({ token: 'x' }), 401, 'invalid_token')
    expectError(await sidecar.request(), 429, 'rate_limited')
  })

  it('C18 upstream_unavailable: the device does not speak HTTP, and none of its bytes leak', async () => {
    const device = await startCannedDevice('SSH-2.0-Secret_Firmware_7\r\n\r\n')
    const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
    const response = await sidecar.request({ token: await sidecar.token() })
    expectError(response, 500, 'upstream_unavailable')
    expect(response.json().error_description).toBe('The device sent no usable response.')
    expect(response.text + response.fields.join()).not.toMatch(/ssh|secret/i)
  })

  it("C18 the device's own error responses are forwarded unchanged", async () => {
    const device = await startDevice(async (request, response) => {
      await readBody(request)
      response.writeHead(500, { 'Content-Type': 'text/html' }).end('<h1>Firmware panic at 0x7</h1>')
    })
    const sidecar = await startSidecar({ transport, device })
    const response = await sidecar.request({ token: await sidecar.token() })
    expect([response.status, response.header('Content-Type'), response.text]).toEqual([
      500,
      'text/html',
      '<h1>Firmware panic at 0x7</h1>',
    ])
  })
})
