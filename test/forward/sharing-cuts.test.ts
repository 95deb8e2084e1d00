import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { recent } from '../support/explained.ts'
import { BrokenTransfer } from '../support/message.ts'
import { describeProtocols } from '../support/transports.ts'
import { startSharingSite } from './sharing-site.ts'

describeProtocols('Shared responses that end early', (transport) => {
  it('H185 a response that breaks off breaks for all who have a part of it', async () => {
    const site = await startSharingSite(transport)
    const asked = [await site.ask(), await site.ask()]
    const { response } = await site.waitForHeld(1)
    response.write('a part')
    for (const exchange of asked) await exchange.waitFor('a part')
    response.destroy()
    for (const exchange of asked) await expect(exchange.response).rejects.toThrow(BrokenTransfer)
    expect(site.held).toHaveLength(1)
  })

  it('H185 without a response, the one that asked is refused, and the device is asked once more for the others', async () => {
    const site = await startSharingSite(transport)
    const asked = [await site.ask(), await site.ask(), await site.ask()]
    ;(await site.waitForHeld(1)).response.destroy()
    expect((await asked[0]?.response)?.status).toBe(500)
    const joined = await site.ask()
    const { response } = await site.waitForHeld(2)
    response.destroy()
    for (const exchange of asked.slice(1))
      expect((await exchange.response).status).toBe(500)
      // It had waited for one response only.
    ;(await site.waitForHeld(3)).response.end('x')
    expect((await joined.response).text).toBe('x')
  })

  it.each(['waits for a place', 'waits for the response', 'reads the response'])(
    'H185 if the first client leaves while it %s, the others go on; the device is left when all have left',
    async (when) => {
      const upstream = { max_in_flight: 1, queue: { timeout: '1m' } }
      const site = await startSharingSite(transport, {}, upstream)
      const inQueue = when === 'waits for a place'
      if (inQueue) await site.ask({ path: '/hold' })
      const asked = [await site.ask(), await site.ask(), await site.ask()]
      const [first, second, third] = asked
      const number = inQueue ? 2 : 1
      if (!inQueue) await site.waitForHeld(number)
      if (when === 'reads the response') {
        site.held[0]?.response.write('a')
        for (const exchange of asked) await exchange.waitFor('a')
      }
      first?.abort()
      await expect.poll(async () => (await recent(site.sidecar)).length, { interval: 5 }).toBeGreaterThan(0)
      if (inQueue) site.held[0]?.response.end()
      const { response } = await site.waitForHeld(number)
      const closed = new Promise((resolve) => response.once('close', resolve))
      response.write('b')
      for (const exchange of [second, third]) await exchange?.waitFor('b')
      second?.abort()
      third?.abort()
      await closed
      await expect.poll(() => site.sidecar.metric('postern_upstream_in_flight')).toBe(0)
      expect(site.held).toHaveLength(number)
    },
  )

  it.each([false, true])(
    'H185 revocation cuts only its own (response begun: %s), also for the client that asked',
    async (begun) => {
      const site = await startSharingSite(transport)
      const other = await site.sidecar.grant()
      const asked = [await site.ask({ token: other.access_token }), await site.ask()]
      const { response } = await site.waitForHeld(1)
      if (begun) {
        response.write('a')
        for (const exchange of asked) await exchange.waitFor('a')
      }
      const own = asked[0]?.response.then(({ status }) => status)
      await site.sidecar.postToken({ token: other.refresh_token }, { path: '/oauth/revoke' })
      if (begun) await expect(own).rejects.toThrow(BrokenTransfer)
      else expect(await own).toBe(401)
      response.end('b')
      expect((await asked[1]?.response)?.text).toBe(begun ? 'ab' : 'b')
      expect(site.held).toHaveLength(1)
    },
  )

  it('H185 the device is left when the grants of all are revoked', async () => {
    const site = await startSharingSite(transport)
    const { access_token: token, refresh_token } = await site.sidecar.grant()
    const asked = [await site.ask({ token }), await site.ask({ token })]
    const { response } = await site.waitForHeld(1)
    const closed = new Promise((resolve) => response.once('close', resolve))
    await site.sidecar.postToken({ token: refresh_token }, { path: '/oauth/revoke' })
    for (const exchange of asked) expect((await exchange.response).status).toBe(401)
    await closed
  })

  it('H185 a slow reader holds up nobody, and gets the whole response at its own speed', async () => {
    const site = await startSharingSite(transport, {}, { max_in_flight: 1 })
    const body = randomBytes(128 * 1024)
    const [slow, quick] = [await site.ask(), await site.ask()]
    slow.pause()
    const { response } = await site.waitForHeld(1)
    response.writeHead(200, { 'Content-Length': body.length })
    response.end(body)
    expect((await quick.response).body.equals(body)).toBe(true)
    // The place at the device is free, although the slow reader has not read.
    const next = await site.ask({ path: '/api/other' })
    ;(await site.waitForHeld(2)).response.end('x')
    expect((await next.response).text).toBe('x')
    slow.resume()
    expect((await slow.response).body.equals(body)).toBe(true)
  })

  it('H185 of a long body without a length, a reader that is far behind the others is cut off, and then asks by itself', async () => {
    const site = await startSharingSite(transport)
    const token = await site.sidecar.token()
    const [slow, quick, late] = [
      await site.ask({ token }),
      await site.ask(),
      await site.ask({ path: '/api/late' }),
    ]
    await site.waitForHeld(2)
    slow.pause()
    const body = randomBytes(24 * 1024 * 1024)
    const [shared, alone] = site.held
    shared?.response.flushHeaders()
    shared?.response.end(body)
    expect((await quick.response).body.equals(body)).toBe(true)
    slow.resume()
    await expect(slow.response).rejects.toThrow(BrokenTransfer)
    const again = [await site.ask({ token }), await site.ask(), await site.ask()]
    await site.waitForHeld(4)
    for (const { response } of site.held.slice(2)) response.end('x')
    for (const exchange of again) expect((await exchange.response).text).toBe('x')
    expect(site.held).toHaveLength(4)
    // A lone reader is waited for.
    late.pause()
    alone?.response.flushHeaders()
    alone?.response.end(body)
    late.resume()
    expect((await late.response).body.equals(body)).toBe(true)
  })
})
