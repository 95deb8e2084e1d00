import { beforeAll, expect, it } from 'vitest'
import { readBody, startCannedDevice, startDevice } from '../support/device.ts'
import { type ErrorCode, expectError } from '../support/errors.ts'
import type { Response } from '../support/message.ts'
import { unusedPort } from '../support/raw.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeTransports } from '../support/transports.ts'

describeTransports('C18', (transport) => {
  let sidecar: TestSidecar
  beforeAll(async () => {
    sidecar = await startSidecar({ transport })
  })

  it('C18 an answer to HEAD has the same fields and no body', async () => {
    const get = await sidecar.request({ method: 'GET' })
    const head = await sidecar.request({ method: 'HEAD' })
    expect(head.status).toBe(401)
    expect(head.body).toHaveLength(0)
    for (const name of ['Content-Type', 'Content-Length', 'WWW-Authenticate', 'Cache-Control']) {
      expect(head.header(name), name).toBe(get.header(name))
    }
  })

  it('C18 it is JSON whatever the client would rather have', async () => {
    const answer = await sidecar.request({ fields: ['Accept', 'text/html', 'Accept-Encoding', 'gzip, br'] })
    expectError(answer, 401, 'invalid_token')
    expect(answer.header('Content-Encoding')).toBeUndefined()
  })

  it('C18 nothing that the client sent comes back in an error', async () => {
    const mark = 'zqx7'
    const answers = [
      await sidecar.request({ path: `/${mark}?${mark}`, token: mark, fields: ['X-Mark', mark] }),
      await sidecar.postToken({ grant_type: mark, [mark]: mark }),
      await sidecar.postToken(`${mark}=1&${mark}=2`),
      await sidecar.postToken({ grant_type: 'password', password: mark }),
      await sidecar.postToken('', { fields: ['X-Mark', mark], path: `/oauth/token?${mark}`, method: 'PUT' }),
    ]
    for (const answer of answers) expect(answer.text + answer.fields.join(' ')).not.toContain(mark)
  })

  it('C18 no field names the software or its version', async () => {
    for (const answer of [await sidecar.request(), await sidecar.postToken('x')]) {
      expect(answer.values('Server')).toEqual([])
      expect(answer.values('X-Powered-By')).toEqual([])
      expect(answer.fields.join(' ')).not.toMatch(/node|undici|\d+\.\d+\.\d+/i)
    }
  })

  it('C18 every code of the gate and the token endpoint comes in the one shape', async () => {
    const sidecar = await startSidecar({ transport, config: { limits: { api: { requests: 2 } } } })
    const expected: readonly (readonly [Promise<Response>, number, ErrorCode])[] = [
      [sidecar.postToken('x=%'), 400, 'invalid_request'],
      [sidecar.postToken({ grant_type: 'password', password: 'wrong' }), 400, 'invalid_grant'],
      [sidecar.postToken({ grant_type: 'magic' }), 400, 'unsupported_grant_type'],
      [sidecar.request(), 401, 'invalid_token'],
    ]
    for (const [answer, status, code] of expected) expectError(await answer, status, code)
    expectError(await sidecar.request({ token: 'x' }), 401, 'invalid_token')
    expectError(await sidecar.request(), 429, 'rate_limited')
  })

  it('C18 upstream_unavailable when nobody is there', async () => {
    const sidecar = await startSidecar({
      transport,
      device: { url: `http://127.0.0.1:${await unusedPort()}` },
    })
    expectError(await sidecar.request({ token: await sidecar.token() }), 500, 'upstream_unavailable')
  })

  it('C18 upstream_unavailable when the device speaks no HTTP, and nothing of what it said leaks', async () => {
    const device = await startCannedDevice('SSH-2.0-Secret_Firmware_7\r\n\r\n')
    const sidecar = await startSidecar({ transport, device, config: { upstream: { parser: 'strict' } } })
    const answer = await sidecar.request({ token: await sidecar.token() })
    expectError(answer, 500, 'upstream_unavailable')
    expect(answer.text + answer.fields.join()).not.toMatch(/ssh|secret/i)
  })

  it('C18 upstream_timeout when the device is silent', async () => {
    const device = await startDevice(() => {})
    const config = { upstream: { response_timeout: '200ms' } }
    const sidecar = await startSidecar({ transport, device, config })
    expectError(await sidecar.request({ token: await sidecar.token() }), 500, 'upstream_timeout')
  })

  it('C18 overloaded when the device and the queue are full', async () => {
    let finish: () => void = () => {}
    const device = await startDevice((_request, response) => {
      finish = () => response.end('late')
    })
    const config = { upstream: { max_in_flight: 1, queue: { size: 0 } } }
    const sidecar = await startSidecar({ transport, device, config })
    const token = await sidecar.token()
    const first = sidecar.request({ token })
    await device.waitForRequests(1)
    const second = await sidecar.request({ token })
    expectError(second, 500, 'overloaded')
    expect(second.header('Retry-After')).toMatch(/^[1-9]\d*$/)
    finish()
    expect((await first).text).toBe('late')
  })

  it('C18 errors of the device are its own: they keep their shape', async () => {
    const device = await startDevice(async (request, response) => {
      await readBody(request)
      response.writeHead(500, { 'Content-Type': 'text/html' }).end('<h1>Firmware panic at 0x7</h1>')
    })
    const sidecar = await startSidecar({ transport, device })
    const answer = await sidecar.request({ token: await sidecar.token() })
    expect([answer.status, answer.header('Content-Type'), answer.text]).toEqual([
      500,
      'text/html',
      '<h1>Firmware panic at 0x7</h1>',
    ])
  })
})
