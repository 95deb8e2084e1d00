import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { startDevice } from '../support/device.ts'
import { headers, requestFields, resetStream, SETTING, settings } from '../support/http2-frames.ts'
import { rawSession } from '../support/http2-session.ts'
import { BrokenTransfer, type Response } from '../support/message.ts'
import { recent } from '../support/records.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports } from '../support/transports.ts'
import { ENDLESS, startSharingSite } from './sharing-site.ts'

describeProtocols('Shared responses that end early', (transport) => {
  it('H185 a response that breaks off breaks for the client that has a part of it, and is asked for once more for the others', async () => {
    const site = await startSharingSite(transport, {}, ENDLESS)
    const asked = [await site.ask(), await site.ask(), await site.ask()]
    for (const number of [1, 2]) {
      const { response } = await site.waitForHeld(number)
      response.write('a part')
      await asked[number - 1]?.waitFor('a part')
      response.destroy()
      await expect(asked[number - 1]?.response).rejects.toThrow(BrokenTransfer)
    }
    const last = await asked[2]?.response
    expect([last?.status, last?.json().error]).toEqual([500, 'upstream_unavailable'])
    expect(site.held).toHaveLength(2)
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
        await first?.waitFor('a')
      }
      first?.abort()
      await expect.poll(async () => (await recent(site.sidecar)).length, { interval: 5 }).toBeGreaterThan(0)
      if (inQueue) site.held[0]?.response.end()
      const { response } = await site.waitForHeld(number)
      const closed = new Promise((resolve) => response.once('close', resolve))
      second?.abort()
      response.write('b')
      third?.abort()
      await closed
      expect(response.writableFinished).toBe(false)
      await expect.poll(() => site.sidecar.metric('postern_upstream_in_flight')).toBe(0)
      expect(site.held).toHaveLength(number)
    },
  )

  it.each([false, true])(
    'H185 revocation cuts only its own (response begun: %s), also for the client that asked',
    async (begun) => {
      const site = await startSharingSite(transport, {}, ENDLESS)
      const other = await site.sidecar.grant()
      const asked = [await site.ask({ token: other.access_token }), await site.ask()]
      const { response } = await site.waitForHeld(1)
      if (begun) {
        response.write('a')
        await asked[0]?.waitFor('a')
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
})

describeTransports(
  'Shared responses that are long',
  (transport) => {
    it('C26 H214 a client that reads nothing is charged for the copy, until it leaves', async () => {
      const site = await startSharingSite(transport, {}, ENDLESS)
      const session = await rawSession(site.sidecar.url, {
        opening: [settings([SETTING.headerTableSize, 0], [SETTING.initialWindowSize, 0])],
      })
      const fields = requestFields(['authorization', `Bearer ${site.token}`], { ':path': '/status' })
      session.send(headers(1, fields))
      const { response } = await site.waitForHeld(1)
      const bodies = (): Promise<number> => site.sidecar.metric('postern_memory_bytes', { of: 'bodies' })
      response.write(randomBytes(100 * 1024))
      await expect.poll(bodies).toBe(100 * 1024)
      // The copy is now for this client alone.
      response.write(randomBytes(100 * 1024))
      await expect.poll(bodies).toBeGreaterThan(128 * 1024)
      session.send(resetStream(1))
      await expect.poll(bodies).toBe(0)
    })

    it('H214 eighteen clients that read a long response at full speed each get all of it', async () => {
      const body = randomBytes(4 * 1024 * 1024)
      const device = await startDevice((_request, response) => {
        response.flushHeaders()
        response.end(body)
      })
      const config = { upstream: { share: { paths: ['/'] } } }
      const sidecar = await startSidecar({ transport, device, config })
      const token = await sidecar.token()
      const ask = (): Promise<Response> => sidecar.request({ token })
      const responses = await Promise.all(Array.from({ length: 18 }, ask))
      expect(responses.map((each) => each.body.equals(body))).toEqual(Array(18).fill(true))
    })

    it('H214 a client that reads a long response slowly is not cut, and another one does not wait for it', async () => {
      const site = await startSharingSite(transport)
      const [slow, quick] = [await site.ask(), await site.ask()]
      const body = randomBytes(24 * 1024 * 1024)
      slow.pause()
      for (const number of [1, 2]) {
        const { response } = await site.waitForHeld(number)
        response.flushHeaders()
        response.end(body)
      }
      expect((await quick.response).body.equals(body)).toBe(true)
      slow.resume()
      expect((await slow.response).body.equals(body)).toBe(true)
    })
  },
  ['h2'],
)
