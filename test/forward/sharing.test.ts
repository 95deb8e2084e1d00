import { expect, it } from 'vitest'
import { stillClock } from '../support/clock.ts'
import { startHoldingDevice } from '../support/device.ts'
import { accessLines, explained } from '../support/records.ts'
import { NO_FORWARDING, startSidecar } from '../support/sidecar.ts'
import { describeProtocols, rowsOver } from '../support/transports.ts'
import { ENDLESS, startSharingSite } from './sharing-site.ts'

describeProtocols('Sharing', (transport) => {
  it('H183 requests that the device would see as the same get one response, each with its own fields and log line', async () => {
    const site = await startSharingSite(transport)
    const asked = [await site.ask(), await site.ask(), await site.ask()]
    const { request, response } = await site.waitForHeld(1)
    response.setHeader('X-Echo', String(request.headers['x-request-id']))
    response.end('the state')
    const responses = await Promise.all(asked.map((exchange) => exchange.response))
    expect(responses.map(({ text }) => text)).toEqual(Array(3).fill('the state'))
    expect(site.held).toHaveLength(1)
    const remaining = responses.map((each) => Number(each.header('x-ratelimit-remaining')))
    expect(new Set(remaining).size).toBe(3)
    const lines = () => accessLines(site.sidecar).filter(({ path }) => path === '/status')
    await expect.poll(() => lines().length).toBe(3)
    expect(new Set(lines().map((line) => line.request_id)).size).toBe(3)
    // A device that echoes the id of the request echoes each client's own.
    expect(new Set(responses.map((each) => each.header('x-echo')))).toEqual(
      new Set(lines().map((line) => line.request_id)),
    )
    expect(await site.sidecar.metric('postern_upstream_shared_total', { source: 'device' })).toBe(2)
  })

  it('H183 the first client gets the response as it comes, the others when it is whole', async () => {
    const site = await startSharingSite(transport, {}, ENDLESS)
    const first = await site.ask()
    const { response } = await site.waitForHeld(1)
    response.write('one ')
    await first.waitFor('one ')
    const second = await site.ask()
    response.end('two')
    for (const exchange of [first, second]) expect((await exchange.response).text).toBe('one two')
    expect(site.held).toHaveLength(1)
  })

  it('H183 those who wait for a response that becomes a stream ask by themselves', async () => {
    const site = await startSharingSite(transport)
    const { clock } = site.sidecar
    const first = await site.ask()
    const { response } = await site.waitForHeld(1)
    response.write('one ')
    await first.waitFor('one ')
    const second = await site.ask()
    await clock.advance(1_999)
    expect(site.held).toHaveLength(1)
    await clock.advance(1)
    ;(await site.waitForHeld(2)).response.end('own')
    expect((await second.response).text).toBe('own')
    response.end('two')
    expect((await first.response).text).toBe('one two')
  })

  it.each(
    rowsOver(transport, [
      ['another query', { path: '/status?a' }],
      ['another method', { method: 'HEAD' }],
      ['another field', { fields: ['Accept', 'text/html'] }],
      ['another cookie', { fields: ['Cookie', 'user=b'] }],
      ['another coding', { fields: ['Accept-Encoding', 'gzip'] }],
      ['another range', { fields: ['Range', 'bytes=0-1'] }],
      ['another condition', { fields: ['If-None-Match', '"a"'] }],
      ['another name of Postern', { authority: 'other.example' }],
      ['a body', { method: 'GET', body: 'x' }],
      ['a path that another path could mean', { path: '/api/../status' }],
    ]),
  )('H183 a request with %s asks by itself', async (_name, other) => {
    const site = await startSharingSite(transport)
    const asked = [await site.ask({ fields: ['Cookie', 'user=a'] }), await site.ask(other)]
    await site.waitForHeld(2)
    for (const { response } of site.held) response.end()
    await Promise.all(asked.map((exchange) => exchange.response))
  })

  it('H183 clients at other addresses and behind other proxies share, also where the device gets no such field', async () => {
    const off = { headers: NO_FORWARDING }
    for (const upstream of [{}, off]) {
      const site = await startSharingSite(transport, {}, upstream)
      const other = await site.sidecar.connect({ from: '127.0.0.2' })
      const fields = ['Authorization', `Bearer ${site.token}`, 'Via', '1.1 a', 'X-Forwarded-For', '192.0.2.1']
      const first = await site.ask()
      await site.waitForHeld(1)
      const second = other.start({ path: '/status', fields: upstream === off ? fields.slice(0, 2) : fields })
      await expect.poll(() => site.sidecar.metric('postern_rate_windows', { endpoint: 'api' })).toBe(2)
      site.held[0]?.response.end('x')
      for (const exchange of [first, second]) expect((await exchange.response).text).toBe('x')
      expect(site.held).toHaveLength(1)
    }
  })

  it('H183 a redirect names Postern as each client sees it', async () => {
    const site = await startSharingSite(transport, {}, { host: 'target', headers: NO_FORWARDING })
    const asked = [await site.ask({ authority: 'one.example' }), await site.ask({ authority: 'two.example' })]
    await site.waitForHeld(2)
    for (const { response } of site.held) response.writeHead(302, { Location: `${site.device.url}/x` }).end()
    const places = await Promise.all(asked.map(async (each) => (await each.response).header('location')))
    const scheme = transport === 'h2' ? 'https' : 'http'
    expect(places).toEqual([`${scheme}://one.example/x`, `${scheme}://two.example/x`])
  })

  it('H183 nothing is shared by default, nor for a path that is not listed', async () => {
    for (const share of [{ paths: [] }, { paths: ['/status/'] }]) {
      const site = await startSharingSite(transport, share)
      const asked = [await site.ask(), await site.ask()]
      await site.waitForHeld(2)
      for (const { response } of site.held) response.end()
      await Promise.all(asked.map((exchange) => exchange.response))
    }
  })

  it.each(
    rowsOver(transport, [
      ['Set-Cookie', { 'Set-Cookie': 'a=b' }, 200],
      ['private', { 'Cache-Control': 'max-age=5, private="x"' }, 200],
      ['401', {}, 401],
      ['403', {}, 403],
      ['a Vary on addresses', { Vary: 'Accept, X-Forwarded-For' }, 200],
      ['a length above the bound', { 'Content-Length': String(128 * 1024 + 1) }, 200],
      ['a stream', { 'Content-Type': 'text/event-stream' }, 200],
    ]),
  )(
    'H183 a response with %s goes to the client that asked; the others ask themselves',
    async (_name, fields, status) => {
      const site = await startSharingSite(transport)
      const asked = [await site.ask(), await site.ask(), await site.ask()]
      const body = Buffer.alloc(128 * 1024 + 1, 'x')
      const first = await site.waitForHeld(1)
      first.response.writeHead(status, fields)
      first.response.write(body.subarray(1))
      // One that waits for a place gets it when the first response passes for a stream.
      const held = async (): Promise<number> => {
        await site.sidecar.clock.advance(100)
        return site.held.length
      }
      await expect.poll(held).toBe(3)
      for (const { response } of site.held) {
        if (!response.headersSent) response.writeHead(status, fields).write(body.subarray(1))
        response.end('x')
      }
      for (const exchange of asked) expect((await exchange.response).body).toHaveLength(body.length)
      expect(await site.sidecar.metric('postern_upstream_shared_total')).toBe(0)
    },
  )

  it('H183 `for` keeps a whole response, with its age, until a change', async () => {
    const site = await startSharingSite(transport, { for: '1h' }, {}, stillClock())
    const first = await site.ask()
    const { response } = await site.waitForHeld(1)
    response.setHeader('Age', '5')
    response.end('kept')
    expect((await first.response).header('age')).toBe('5')
    await site.sidecar.clock.advance(3_000)
    const second = await (await site.ask()).response
    expect([second.text, second.header('age')]).toEqual(['kept', '8'])
    expect(await site.sidecar.metric('postern_upstream_shared_total', { source: 'kept' })).toBe(1)
    const device = (await explained(site.sidecar, '/status')).Device
    expect(device).toMatch(
      /^The main service\. Shared: it answered 200 to another request .* 3\d{3}(?:\.\d)? ms before this/,
    )
    await (await site.ask({ method: 'POST', path: '/set' })).response
    const third = await site.ask()
    ;(await site.waitForHeld(2)).response.end('new')
    expect((await third.response).text).toBe('new')
  })

  it.each(
    rowsOver(transport, [
      ['no-store', { 'Cache-Control': 'no-store' }, 200, 'x'],
      ['a failure', {}, 500, 'x'],
      ['a body above the bound', {}, 200, 'x'.repeat(128 * 1024 + 1)],
    ]),
  )(
    'H183 `for` keeps no response with %s, and no other longer than it says',
    async (_name, fields, status, body) => {
      const site = await startSharingSite(transport, { for: '1h' })
      for (const count of [1, 2]) {
        const asked = await site.ask()
        const { response } = await site.waitForHeld(count)
        response.writeHead(status, fields).flushHeaders()
        response.end(body)
        await asked.response
      }
    },
  )

  it('H183 a response is kept for as long as `for` says', async () => {
    const site = await startSharingSite(transport, { for: '10s' })
    const { clock } = site.sidecar
    const first = await site.ask()
    ;(await site.waitForHeld(1)).response.end('x')
    await first.response
    await clock.advance(9_999)
    expect((await (await site.ask()).response).text).toBe('x')
    await clock.advance(1)
    await site.ask()
    await site.waitForHeld(2)
  })

  it('H183 429 and 401 are each client’s own', async () => {
    const { device, held } = await startHoldingDevice()
    const config = { upstream: { share: { paths: ['/'], for: '1h' } }, limits: { api: { requests: 3 } } }
    const sidecar = await startSidecar({ transport, device, config })
    const token = await sidecar.token()
    const asked = Array.from({ length: 5 }, () => sidecar.request({ token }))
    let refused = 0
    for (const each of asked) void each.then(({ status }) => (refused += status === 429 ? 1 : 0))
    await expect.poll(() => refused).toBe(2)
    held[0]?.end('x')
    const statuses = (await Promise.all(asked)).map(({ status }) => status).sort()
    expect(statuses).toEqual([200, 200, 200, 429, 429])
    expect((await sidecar.request({ token: 'x', from: '127.0.0.2' })).status).toBe(401)
    expect(device.requests).toHaveLength(1)
  })
})
