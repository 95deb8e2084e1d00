import { expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { expectError, limitsOf } from '../support/expectations.ts'
import { rawConnection } from '../support/raw.ts'
import { PASSWORD, PASSWORD_GRANT, startSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'

const one = { limits: { api: { requests: 1 }, oauth: { requests: 1 } } }

describeProtocols('C15 A request over the limit', (transport) => {
  it('C15 a request past the limit is 429 with a JSON error and Retry-After', async () => {
    const sidecar = await startSidecar({ transport, config: one, clock: stillClock() })
    await sidecar.request()
    await sidecar.postToken({})
    for (const response of [await sidecar.request(), await sidecar.postToken({})]) {
      expectError(response, 429, 'rate_limited')
      expect(response.header('Retry-After')).toBe('60')
      expect(limitsOf(response)).toMatchObject({ limit: 1, remaining: 0 })
      expect(response.header('Cache-Control')).toBe('no-store')
    }
    const head = await sidecar.request({ method: 'HEAD' })
    expect([head.status, head.header('Retry-After'), head.body.length]).toEqual([429, '60', 0])
  })

  it('C15 Retry-After is at least 1, never before the reset and less than a second after it', async () => {
    const clock = stillClock()
    const sidecar = await startSidecar({ transport, config: one, clock })
    const connection = await sidecar.connect()
    for (const into of [0, 999, 30_500, 59_999]) {
      const opened = await connection.send({})
      expect(opened.status, `${into} ms into the window`).toBe(401)
      await clock.advance(into)
      const refused = await connection.send({})
      const wait = Number(refused.header('Retry-After'))
      expect(refused.status).toBe(429)
      expect(wait).toBeGreaterThanOrEqual(1)
      expect(wait * 1000, 'not before the reset').toBeGreaterThanOrEqual(60_000 - into)
      expect(wait * 1000, 'less than a second after the reset').toBeLessThan(61_000 - into)
      expect(limitsOf(refused).reset * 1000).toBeGreaterThanOrEqual(clock.wall() + 60_000 - into)
      await clock.advance(wait * 1000)
    }
  })

  it('C15 refused requests do not prolong the window', async () => {
    const clock = stillClock()
    const sidecar = await startSidecar({ transport, config: one, clock })
    const connection = await sidecar.connect()
    const { reset } = limitsOf(await connection.send({}))
    for (let i = 0; i < 5; i += 1) {
      await clock.advance(10_000)
      const refused = await connection.send({})
      expect([refused.status, limitsOf(refused).reset]).toEqual([429, reset])
    }
    await clock.advance(10_000)
    expect((await connection.send({})).status).toBe(401)
  })

  it('C15 the limit is applied before authentication: no token, a bad and a good one get the same 429', async () => {
    const sidecar = await startSidecar({
      clock: stillClock(),
      transport,
      config: { limits: { api: { requests: 1 } } },
    })
    const token = await sidecar.token()
    await sidecar.request({ token })
    const seen = sidecar.device.requests.length
    for (const request of [{}, { token: 'unknown' }, { token }]) {
      const response = await sidecar.request(request)
      expectError(response, 429, 'rate_limited')
      expect(response.header('WWW-Authenticate')).toBeUndefined()
    }
    expect(sidecar.device.requests).toHaveLength(seen)
    expect(await sidecar.metric('postern_auth_failures_total')).toBe(0)
    expect(await sidecar.metric('postern_rate_limited_total', { endpoint: 'api' })).toBe(3)
  })

  it('C15 the limit is applied before the password check: no password is tried past it', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport, config: one })
    await sidecar.postToken({ grant_type: 'password', password: 'wrong' })
    expectError(await sidecar.postToken({ grant_type: 'password', password: PASSWORD }), 429, 'rate_limited')
    expectError(await sidecar.postToken({ grant_type: 'password', password: 'x' }), 429, 'rate_limited')
    expect(await sidecar.metric('postern_password_failures_total')).toBe(1)
    expect(await sidecar.metric('postern_tokens_issued_total')).toBe(0)
  })

  it('C15 the limit is applied before the body: the refusal does not wait for it and sends no 100', async () => {
    const sidecar = await startSidecar({ clock: stillClock(), transport, config: one })
    for (const path of ['/', '/oauth/token']) {
      await sidecar.request({ path })
      for (const framing of [['Content-Length', '100'], []]) {
        const connection = await sidecar.connect()
        const type = ['Content-Type', 'application/x-www-form-urlencoded']
        const exchange = connection.start({
          method: 'POST',
          path,
          fields: [...type, 'Expect', '100-continue', ...framing],
          open: true,
        })
        const response = await exchange.response
        expectError(response, 429, 'rate_limited')
        expect(response.informational).toEqual([])
      }
    }
  })
})

describeTransports(
  'C15 A request over the limit in HTTP/1',
  (transport) => {
    it('C15 a token request in the body of a refused one gets no token', async () => {
      const sidecar = await startSidecar({ clock: stillClock(), transport, config: one })
      await sidecar.postToken({})
      const inner = `POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Length: ${PASSWORD_GRANT.length}\r\n\r\n${PASSWORD_GRANT}`
      const raw = await rawConnection(sidecar.url)
      raw.write(
        `POST /oauth/token HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
      )
      const all = await raw.closed
      expect(all.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 429'])
    })
  },
  ['http1', 'tls'],
)
