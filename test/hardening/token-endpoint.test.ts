import { expect, it } from 'vitest'
import { hashPassword } from '../../src/password/key-derivation.ts'
import { expectError } from '../support/errors.ts'
import { shareOfThread } from '../support/lived-time.ts'
import { headOf, responsesIn } from '../support/raw-responses.ts'
import {
  encodeForm,
  FORM_TYPE,
  PASSWORD,
  PASSWORD_GRANT,
  startSidecar,
  type TestSidecar,
} from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'
import { SMUGGLED, sharedFront, startFront } from '../support/front.ts'

describeProtocols('The token endpoint', (transport) => {
  const front = sharedFront(transport)

  it('H29 a body with a length over 8 KiB is refused before it is read', async () => {
    const connection = await front.sidecar.connect()
    const fields = ['Content-Type', FORM_TYPE, 'Content-Length', '1000000000']
    const exchange = connection.start({ method: 'POST', path: '/oauth/token', fields, open: true })
    expectError(await exchange.response, 400, 'invalid_request')
    connection.close()
  })

  it('H29 a body that grows over 8 KiB is refused, and the refusal reaches the client', async () => {
    const connection = await front.sidecar.connect()
    const exchange = connection.start({
      method: 'POST',
      path: '/oauth/token',
      fields: ['Content-Type', FORM_TYPE],
      open: true,
    })
    for (let i = 0; i < 20; i += 1) exchange.write('x'.repeat(1000))
    expectError(await exchange.response, 400, 'invalid_request')
    if (transport !== 'h2') await connection.closed
    connection.close()
  })

  it('H33 ten concurrent refreshes under rotation give one new pair', async () => {
    const rotating = await startSidecar({ transport, config: { tokens: { rotate_refresh: true } } })
    const { refresh_token, access_token } = await rotating.grant()
    const pairs = await Promise.all(Array.from({ length: 10 }, () => rotating.refresh(refresh_token)))
    expect(new Set(pairs.map((pair) => `${pair.access_token} ${pair.refresh_token}`)).size).toBe(1)
    expect([refresh_token, access_token]).not.toContain(pairs[0]?.refresh_token)
    expect([refresh_token, access_token]).not.toContain(pairs[0]?.access_token)
  })

  it('H34 an access token is never accepted as a refresh token or the reverse, before and after a refresh', async () => {
    const { sidecar } = front
    const first = await sidecar.grant()
    const second = await sidecar.refresh(first.refresh_token)
    for (const { access_token, refresh_token } of [first, second]) {
      expectError(await sidecar.request({ token: refresh_token }), 401, 'invalid_token')
      const swapped = { grant_type: 'refresh_token', refresh_token: access_token }
      expectError(await sidecar.postToken(swapped), 400, 'invalid_grant')
      expectError(
        await sidecar.postToken({ grant_type: 'password', password: refresh_token }),
        400,
        'invalid_grant',
      )
      expect((await sidecar.request({ token: access_token })).status).toBe(200)
    }
  })
})

describeTransports(
  'The token endpoint in HTTP/1',
  (transport) => {
    it('H29 a request behind a body over 8 KiB is not read', async () => {
      const front = await startFront(transport)
      const before = front.sidecar.device.byteCount
      const head = (framing: string) =>
        headOf('POST /oauth/token HTTP/1.1', 'Host: device', `Content-Type: ${FORM_TYPE}`, framing)
      const large = 'x'.repeat(9000)
      for (const bytes of [
        `${head('Content-Length: 9000')}${large}${SMUGGLED}`,
        `${head('Transfer-Encoding: chunked')}${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n${SMUGGLED}`,
      ]) {
        expect((await front.responsesTo(bytes)).map(({ status }) => status)).toEqual([400])
      }
      expect(front.sidecar.device.byteCount).toBe(before)
      await front.expectNothingLeft()
    })

    it('H30 a body that arrives byte by byte is 400 at its deadline', async () => {
      const front = await startFront(transport)
      const { clock, metric } = front.sidecar
      const raw = await front.send(
        headOf(
          'POST /oauth/token HTTP/1.1',
          'Host: device',
          `Content-Type: ${FORM_TYPE}`,
          `Content-Length: ${PASSWORD_GRANT.length}`,
        ),
      )
      for (let sent = 0; sent < 9; sent += 1) {
        raw.write(PASSWORD_GRANT.charAt(sent))
        // Meanwhile the sidecar reads it.
        await metric('postern_connections')
        await clock.advance(1_000)
      }
      await clock.advance(999)
      expect(await metric('postern_refusals_total')).toBe(0)
      expect(raw.received).toBe('')
      await clock.advance(1)
      expect(responsesIn(await raw.closed).map(({ status }) => status)).toEqual([400])
      await front.expectNothingLeft()
    })
  },
  ['http1', 'tls'],
)

/** A number of logins at once, each on a connection of its own. */
async function logInAtOnce(sidecar: TestSidecar, count: number, passwordOf: (i: number) => string) {
  const connections = await Promise.all(Array.from({ length: count }, () => sidecar.connect()))
  const fields = ['Content-Type', FORM_TYPE]
  return connections.map((connection, i) => {
    const body = encodeForm({ grant_type: 'password', password: passwordOf(i) })
    return connection.send({ method: 'POST', path: '/oauth/token', body, fields })
  })
}

it('H32 two hundred concurrent logins queue for hashing, and less than half of the work is done on the event loop', async () => {
  const sidecar = await startSidecar({ password: await hashPassword(PASSWORD) })
  const share = shareOfThread()
  const logins = await logInAtOnce(sidecar, 200, (i) => `wrong ${i}`)
  // Another client is served meanwhile.
  expect((await sidecar.request()).status).toBe(401)
  const responses = await Promise.all(logins)
  const ofThread = share()
  const refused = responses.filter(({ status }) => status !== 400)
  expect(responses.length - refused.length).toBeGreaterThan(2)
  expect(refused.length).toBeGreaterThan(50)
  for (const response of refused) expectError(response, 500, 'overloaded')
  expect(ofThread).toBeLessThan(0.5)
})

it('H32 two hundred concurrent logins with the right password all succeed: those that wait share one hash', async () => {
  const sidecar = await startSidecar({ password: await hashPassword(PASSWORD) })
  const responses = await Promise.all(await logInAtOnce(sidecar, 200, () => PASSWORD))
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
  // Each has a grant of its own.
  expect(new Set(responses.map((response) => response.json().access_token)).size).toBe(200)
})
