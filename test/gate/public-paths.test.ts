import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPublicPaths } from '../../src/gate/classify.ts'
import { startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'

const isPublic = createPublicPaths(['/login', '/static/'])

describe('a public path', () => {
  it.each(['/login', '/login?next=/api', '/static/', '/static/logo.png', '/static/a/b;v=1?x=../..'])(
    'matches byte for byte: %s',
    (target) => expect(isPublic(target)).toBe(true),
  )

  it.each([
    '/',
    '/Login',
    '/login/',
    '/login;x',
    '/loginx',
    '/static',
    '/api?path=/login',
    '//login',
    '/static/../api',
    '/static/./x',
    '/static/..',
    '/static/..;/api',
    '/static/%2e%2e/api',
    '/static/%2E./api',
    '/static/..%2fapi',
    '/static/%5c..%5capi',
    '/static/..\\api',
    '/static/%252e%252e/api',
    '/static//api',
    '/static/x%00.png',
    '/static/%c0%ae%c0%ae/api',
    '/static/%e0%80%ae./api',
    '/static/%u002e%u002e/api',
  ])('does not match %s', (target) => expect(isPublic(target)).toBe(false))

  it('matches only targets that decode and resolve to a public path', () => {
    const pieces = fc.constantFrom('/', '.', '..', '%2e', '%2f', '%5c', '\\', ';', 'a', 'static', '%25', '?')
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const target = `/static/${parts.join('')}`
        if (!isPublic(target)) return
        const read = new URL(target, 'http://device').pathname
        expect(decodeURIComponent(read)).toMatch(/^\/static\//)
      }),
    )
  })
})

describeProtocols('public_paths', (transport) => {
  it('a public path needs no token and counts against the limits; all other paths need a token', async () => {
    const device = await startDevice()
    const config = { public_paths: ['/login', '/static/'], limits: { api: { requests: 3 } } }
    const sidecar = await startSidecar({ transport, device, config })
    expect((await sidecar.request({ path: '/login' })).status).toBe(200)
    expect((await sidecar.request({ path: '/static/logo.png', token: 'not-one' })).status).toBe(200)
    expect((await sidecar.request({ path: '/static/../api' })).status).toBe(401)
    expect((await sidecar.request({ path: '/login' })).status).toBe(429)
    expect(device.requests.map(({ target }) => target)).toEqual(['/login', '/static/logo.png'])
  })
})

describeProtocols('enforce: false', (transport) => {
  it('forwards what it would refuse, counts and logs it, and still protects the token endpoint', async () => {
    const device = await startDevice()
    const config = { enforce: false, limits: { api: { requests: 2 } } }
    const sidecar = await startSidecar({ transport, device, config })
    for (const _ of [1, 2, 3]) expect((await sidecar.request()).status).toBe(200)
    expect(device.requests).toHaveLength(3)
    expect(await sidecar.metric('postern_auth_failures_total', { reason: 'missing' })).toBe(2)
    expect(await sidecar.metric('postern_rate_limited_total', { endpoint: 'api' })).toBe(1)
    const would = sidecar.logLines().filter((line) => line.includes('"would_refuse"'))
    expect(would).toHaveLength(3)
    expect(would[2]).toContain('"would_refuse":"rate-limited"')
    expect((await sidecar.postToken({ grant_type: 'password', password: 'wrong' })).status).toBe(400)
    expect((await sidecar.request({ method: 'GET', path: '/oauth/token' })).status).toBe(400)
  })
})
