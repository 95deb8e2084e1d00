import { expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { transports } from '../support/transports.ts'

const DASH = 'https://dash.example'
const config = { cors: { origins: [DASH, 'http://localhost:3000'] } }

/** The fields of a response to another origin (Fetch §3.3.3, Private Network Access). */
const NAMES = [
  'Allow-Origin',
  'Allow-Credentials',
  'Allow-Methods',
  'Allow-Headers',
  'Allow-Private-Network',
  'Expose-Headers',
  'Max-Age',
]

const preflight = (origin: string, path = '/api') => ({
  method: 'OPTIONS',
  path,
  fields: [
    'Origin',
    origin,
    'Access-Control-Request-Method',
    'DELETE',
    'Access-Control-Request-Headers',
    'authorization,x-thing',
  ],
})

for (const transport of transports) {
  it(`H191 preflights of a listed origin are answered here, without a token, and count, over ${transport}`, async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport, config, documentedLimits: true })
    const response = await sidecar.request(preflight(DASH))
    expect(response.status).toBe(200)
    expect(response.body.length).toBe(0)
    expect(response.header('access-control-allow-origin')).toBe(DASH)
    expect(response.header('access-control-allow-methods')).toBe('DELETE')
    expect(response.header('access-control-allow-headers')).toBe('authorization,x-thing')
    expect(response.header('access-control-max-age')).toBe('600')
    expect(response.header('vary')).toBe('Origin')
    expect(response.header('access-control-allow-credentials')).toBeUndefined()
    expect(response.header('x-ratelimit-remaining')).toBe('59')
    const token = await sidecar.request(preflight('http://localhost:3000', '/oauth/token'))
    expect(token.status).toBe(200)
    expect(token.header('access-control-allow-origin')).toBe('http://localhost:3000')
    expect(token.header('x-ratelimit-limit')).toBe('30')

    for (const origin of [
      'https://evil.example',
      'https://dash.example.evil',
      'HTTPS://dash.example',
      'null',
      '',
    ]) {
      const refused = await sidecar.request(preflight(origin))
      expect(refused.status).toBe(401)
      expect(refused.header('access-control-allow-origin')).toBeUndefined()
      expect(refused.header('vary')).toBe('Origin')
    }
    const twice = preflight(DASH)
    expect((await sidecar.request({ ...twice, fields: [...twice.fields, 'Origin', DASH] })).status).toBe(401)
    expect((await sidecar.request({ method: 'OPTIONS', fields: ['Origin', DASH] })).status).toBe(401)
    expect(sidecar.device.requests).toEqual([])
    for (let i = 0; i < 60; i++) await sidecar.request(preflight(DASH))
    const limited = await sidecar.request(preflight(DASH))
    expect(limited.status).toBe(429)
    expect(limited.header('access-control-allow-origin')).toBe(DASH)
  })

  it(`H191 responses and refusals get the fields, in place of those of the device, over ${transport}`, async () => {
    const device = await startDevice((_, response) => {
      for (const name of NAMES) response.setHeader(`Access-Control-${name}`, 'of the device')
      response.setHeader('Vary', 'Accept')
      response.end('read')
    })
    const sidecar = await startSidecar({ transport, device, config })
    const fields = ['Origin', DASH]
    const granted = await sidecar.postToken({ grant_type: 'password', password: 'wrong' }, { fields })
    expect(granted.status).toBe(400)
    expect(granted.header('access-control-allow-origin')).toBe(DASH)
    expect((await sidecar.request({ fields })).header('access-control-allow-origin')).toBe(DASH)
    const token = await sidecar.token()
    const read = await sidecar.request({ token, fields })
    expect(read.text).toBe('read')
    expect(read.header('access-control-allow-origin')).toBe(DASH)
    expect(read.header('access-control-expose-headers')).toBe('*')
    expect(read.fields).not.toContain('of the device')
    expect(read.values('vary')).toEqual(['Accept', 'Origin'])
    for (const other of [[], ['Origin', 'https://evil.example']]) {
      const response = await sidecar.request({ token, fields: other })
      expect(response.header('access-control-allow-origin')).toBeUndefined()
      expect(response.values('vary')).toEqual(['Accept', 'Origin'])
    }
  })
}

it('H191 with the precise statuses a preflight gets 204', async () => {
  const sidecar = await startSidecar({ config: { ...config, status_codes: 'http' } })
  expect((await sidecar.request(preflight(DASH))).status).toBe(204)
})

it('H191 without the key nothing changes', async () => {
  const device = await startDevice((_, response) => {
    response.setHeader('Access-Control-Allow-Origin', '*')
    response.end()
  })
  const sidecar = await startSidecar({ device })
  expect((await sidecar.request(preflight(DASH))).status).toBe(401)
  const passed = await sidecar.request({
    ...preflight(DASH),
    fields: [...preflight(DASH).fields, 'Authorization', `Bearer ${await sidecar.token()}`],
  })
  expect(passed.header('access-control-allow-origin')).toBe('*')
  expect(passed.header('vary')).toBeUndefined()
})

it.each([
  'capacitor://localhost',
  'ionic://localhost',
  'tauri://localhost',
  'app://localhost:8080',
  'chrome-extension://abcdefghijklmnopabcdefghijklmnop',
  'moz-extension://0a1b2c3d-0000-4000-8000-000000000000',
  'safari-web-extension://0A1B2C3D-0000-4000-8000-000000000000',
  'vscode-webview://abc',
  'file://',
])('H191 an app or an extension with the origin %s may use the API', async (origin) => {
  const sidecar = await startSidecar({ config: { cors: { origins: [origin] } } })
  const response = await sidecar.request(preflight(origin))
  expect([response.status, response.header('access-control-allow-origin')]).toEqual([200, origin])
})

it('H191 an origin is scheme, host and port as browsers write them', async () => {
  for (const origin of [
    'https://dash.example/',
    'dash.example',
    '*',
    'null',
    'https://DASH.example',
    'https://a:443',
    'ftp://a',
    'wss://a',
    'Capacitor://localhost',
    'capacitor://localhost/',
    'capacitor:localhost',
    'tauri://',
  ]) {
    await expect(startSidecar({ config: { cors: { origins: [origin] } } })).rejects.toThrow(
      'origin of a web page',
    )
  }
})
