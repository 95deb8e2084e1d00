import { expect, it } from 'vitest'
import { passUntil } from '../support/clock.ts'
import type { Connection, Exchange } from '../support/message.ts'
import { type RawPeer, rawConnection } from '../support/raw.ts'
import { PASSWORD, PASSWORD_GRANT, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'

const formType = ['Content-Type', 'application/x-www-form-urlencoded']
/** How long a body may pause, and the default of `listen.header_timeout` (ms). */
const DEADLINE = 10_000

/** A token request whose body the sidecar reads. */
async function beginForm(
  sidecar: TestSidecar,
): Promise<{ readonly connection: Connection; readonly exchange: Exchange }> {
  const connection = await sidecar.connect()
  const fields = [...formType, 'Expect', '100-continue']
  const exchange = connection.start({ method: 'POST', path: '/oauth/token', fields, open: true })
  await exchange.waitForInformational(100)
  return { connection, exchange }
}

/** How many requests the sidecar has given up because of their deadline. */
const late = (sidecar: TestSidecar): Promise<number> =>
  sidecar.metric('postern_refusals_total', { reason: 'request_timeout' })

describeTransports('C9 The deadline of a body', (transport) => {
  it('C9 a body that stops in the middle is given up at the deadline', async () => {
    const sidecar = await startSidecar({ transport })
    const { connection, exchange } = await beginForm(sidecar)
    exchange.write(PASSWORD_GRANT.slice(0, 20))
    await sidecar.clock.advance(DEADLINE - 1)
    expect(await late(sidecar)).toBe(0)
    await sidecar.clock.advance(1)
    expect(await late(sidecar)).toBe(1)
    expect((await exchange.response).status).toBe(400)
    if (transport !== 'h2') await connection.closed
  })

  it('C9 H30 a body that arrives byte by byte does not extend the deadline', async () => {
    const sidecar = await startSidecar({ transport })
    const { exchange } = await beginForm(sidecar)
    const [last, ...before] = [...PASSWORD_GRANT.slice(0, 10)]
    for (const character of before) {
      exchange.write(character)
      await sidecar.clock.advance(DEADLINE / 10)
      expect(await late(sidecar)).toBe(0)
    }
    exchange.write(last ?? '')
    await sidecar.clock.advance(DEADLINE / 10 - 1)
    expect(await late(sidecar)).toBe(0)
    await sidecar.clock.advance(1)
    expect(await late(sidecar)).toBe(1)
    expect((await exchange.response).status).toBe(400)
  })

  it('C9 a slow body delays no other client, and is accepted', async () => {
    const sidecar = await startSidecar({ transport })
    const { exchange } = await beginForm(sidecar)
    exchange.write('grant_type=')
    await sidecar.clock.advance(DEADLINE - 1)
    await sidecar.grant()
    exchange.end(PASSWORD_GRANT.slice('grant_type='.length))
    expect((await exchange.response).status).toBe(200)
  })
})

describeTransports(
  'C9 The deadline of a head',
  (transport) => {
    /** A connection that the sidecar has accepted. */
    async function accepted(sidecar: TestSidecar): Promise<RawPeer> {
      const raw = await rawConnection(sidecar.url)
      await expect.poll(() => sidecar.metric('postern_connections')).toBe(1)
      return raw
    }

    it.each([
      ['stops in the middle', 'POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-'],
      ['never starts', ''],
    ])('C9 a head that %s is given up at the deadline', async (_name, bytes) => {
      const sidecar = await startSidecar({ transport })
      const raw = await accepted(sidecar)
      raw.write(bytes)
      await sidecar.clock.advance(DEADLINE - 1)
      expect([await sidecar.metric('postern_connections'), raw.received]).toEqual([1, ''])
      await sidecar.clock.advance(1)
      expect(await raw.closed).toMatch(bytes === '' ? /^$/ : /^HTTP\/1\.1 400 /)
    })

    it('C9 a head that arrives line by line does not extend the deadline', async () => {
      const sidecar = await startSidecar({ transport })
      const raw = await accepted(sidecar)
      raw.write('GET / HTTP/1.1\r\n')
      for (let line = 0; line < 9; line += 1) {
        await sidecar.clock.advance(DEADLINE / 10)
        raw.write('X-A: b\r\n')
        expect([await sidecar.metric('postern_connections'), raw.received]).toEqual([1, ''])
      }
      await sidecar.clock.advance(DEADLINE / 10)
      expect(await raw.closed).toMatch(/^HTTP\/1\.1 400 /)
    })
  },
  ['http1', 'tls'],
)

describeProtocols('C9 Secrets', (transport) => {
  it('C9 no password, token or token body reaches a log, a metric, a response or the device', async () => {
    const config = {
      log: { level: 'trace' },
      tokens: { rotate_refresh: true },
    }
    const sidecar = await startSidecar({ transport, config })
    const responses: string[] = []
    const wrong = 'swordfish-of-another-house'
    const client = 'client-secret-of-the-app'
    const grant = await sidecar.grant()
    const refreshed = await sidecar.refresh(grant.refresh_token)
    const basic = btoa(`app:${client}`)

    const post = async (...args: Parameters<typeof sidecar.postToken>) => {
      responses.push((await sidecar.postToken(...args)).text)
    }
    const request = async (...args: Parameters<typeof sidecar.request>) => {
      const response = await sidecar.request(...args)
      responses.push(response.text, response.fields.join('\n'))
    }
    await post({ grant_type: 'password', password: wrong, client_secret: client })
    await post({ grant_type: 'password', password: wrong }, { fields: ['Authorization', `Basic ${basic}`] })
    await post(`${PASSWORD_GRANT}&x=%zz`)
    await post(`${PASSWORD_GRANT}&password=${wrong}`)
    await post({ [wrong]: PASSWORD, grant_type: wrong })
    await post({ grant_type: 'refresh_token', refresh_token: grant.access_token })
    await post({ grant_type: 'refresh_token', refresh_token: wrong })
    await post(PASSWORD_GRANT, { fields: ['Content-Type', `text/plain; password=${wrong}`] })
    await post(PASSWORD_GRANT, {
      path: `/oauth/token?${PASSWORD_GRANT}&access_token=${grant.access_token}`,
      method: 'PUT',
    })
    await request({ path: '/a', token: grant.access_token })
    await request({ path: '/b', token: refreshed.access_token, fields: ['Cookie', 'a=b'] })
    await request({ path: '/c', token: refreshed.refresh_token })
    await request({ path: '/d', token: wrong })
    await request({ path: '/e', fields: ['Authorization', `Basic ${basic}`] })
    await request({ path: '/f', fields: ['Authorization', `Bearer ${grant.access_token} x`] })
    await sidecar.device.stop()
    await passUntil(sidecar.clock, request({ path: '/g', token: grant.access_token }))
    const metrics = await sidecar.metrics()
    await sidecar.stop()

    const places = {
      responses: responses.join('\n'),
      log: sidecar.logLines().join('\n'),
      metrics,
      device: sidecar.device.bytes.toString('latin1'),
    }
    // Each place holds something of these requests: otherwise the check below would prove nothing.
    expect(places.device).toContain('GET /b ')
    expect(places.metrics).toContain('postern_')
    expect(places.log).toContain('/b')
    const secrets = [
      PASSWORD,
      encodeURIComponent(PASSWORD),
      Buffer.from(PASSWORD).toString('base64'),
      'correct',
      wrong,
      client,
      basic,
      ...Object.values(grant).filter((value) => typeof value === 'string' && value !== 'Bearer'),
      refreshed.access_token,
      refreshed.refresh_token,
    ].map(String)
    for (const [place, text] of Object.entries(places)) {
      for (const secret of secrets) expect(text.includes(secret), `${secret} in ${place}`).toBe(false)
    }
  })
})
