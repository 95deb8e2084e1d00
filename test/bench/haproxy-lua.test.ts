import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { configuration } from '../../bench/peers/haproxy-lua.ts'
import { PASSWORD } from '../../bench/sidecar.ts'
import { launch } from '../devices/launch.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { send } from '../support/client.ts'
import { startDevice } from '../support/device.ts'
import type { Response } from '../support/message.ts'
import { needs } from '../support/tools.ts'

it('HAProxy with Lua does the documented job that Postern is compared by', async () => {
  needs('haproxy')
  const device = await startDevice()
  const file = join(temporaryDirectory(), 'haproxy.cfg')
  const started = await launch('haproxy', (port) => {
    writeFileSync(file, configuration({ port, devicePort: Number(new URL(device.url).port), requests: 3 }))
    return ['-db', '-f', file]
  })
  const url = started ?? expect.fail('it did not start')
  const ask = (form: string): Promise<Response> =>
    send({
      ...{ transport: 'http1', url, method: 'POST', path: '/oauth/token', body: form },
      fields: ['Content-Type', 'application/x-www-form-urlencoded'],
    })
  const use = (token: unknown): Promise<Response> =>
    send({ transport: 'http1', url, path: '/api', fields: ['Authorization', `Bearer ${String(token)}`] })

  const login = await ask(`${new URLSearchParams({ grant_type: 'password', password: PASSWORD })}`)
  expect([login.status, login.json().expires_in, login.header('X-RateLimit-Limit')]).toEqual([
    200,
    3600,
    '30',
  ])
  const { access_token: token, refresh_token: refreshToken } = login.json()
  const response = await use(token)
  expect([response.status, response.text, response.header('X-RateLimit-Remaining')]).toEqual([
    200,
    'from the device',
    '2',
  ])
  expect(device.requests[0]?.fields.join()).not.toMatch(/authorization/i)
  const renewed = await ask(`grant_type=refresh_token&refresh_token=${refreshToken}`)
  expect((await use(renewed.json().access_token)).status).toBe(200)
  const invalid = await use(refreshToken)
  expect([invalid.status, invalid.json().error]).toEqual([401, 'invalid_token'])
  const limited = await use(token)
  expect([limited.status, limited.json().error, limited.header('Retry-After')]).toEqual([
    429,
    'rate_limited',
    expect.stringMatching(/^\d+$/),
  ])
  for (const [form, error] of [
    ['grant_type=password&password=wrong', 'invalid_grant'],
    ['grant_type=magic', 'unsupported_grant_type'],
    ['grant_type=password&password=%zz', 'invalid_request'],
  ] as const) {
    const refused = await ask(form)
    expect([refused.status, refused.json().error]).toEqual([400, error])
  }
  expect(device.requests).toHaveLength(2)
})
