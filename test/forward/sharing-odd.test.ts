import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startBasicDevice } from '../sign-in/devices.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { rawConnection } from '../support/raw.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { explained, explanationsOf, recent } from '../support/records.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols } from '../support/transports.ts'
import { startSharingSite } from './sharing-site.ts'

describeProtocols('Sharing with odd clients and devices', (transport) => {
  it('H183 HEAD shares with HEAD, without a body, and is kept', async () => {
    const site = await startSharingSite(transport, { for: '1h' })
    const asked = [await site.ask({ method: 'HEAD' }), await site.ask({ method: 'HEAD' })]
    const { response } = await site.waitForHeld(1)
    response.writeHead(200, { 'Content-Length': 1_000_000 }).end()
    asked.push(await site.ask({ method: 'HEAD' }))
    for (const exchange of asked) {
      const { header, text } = await exchange.response.then((each) => ({
        header: each.header('content-length'),
        text: each.text,
      }))
      expect([header, text]).toEqual(['1000000', ''])
    }
    expect(site.held).toHaveLength(1)
  })

  it('H183 an interim response goes to the client that asked, and the final one, without its trailers, to all', async () => {
    const site = await startSharingSite(transport)
    const asked = [await site.ask(), await site.ask()]
    const { response } = await site.waitForHeld(1)
    response.writeEarlyHints({ link: '</a.css>; rel=preload' })
    await asked[0]?.waitForInformational(103)
    response.writeHead(200, { Trailer: 'X-Sum' })
    response.write('x')
    response.addTrailers({ 'X-Sum': '1' })
    response.end()
    const all = await Promise.all(asked.map((exchange) => exchange.response))
    expect(all.map(({ text, informational }) => [text, informational.length])).toEqual([
      ['x', 1],
      ['x', 0],
    ])
    expect(new Set(all.map(({ trailers }) => trailers.join())).size).toBe(1)
  })

  it('H185 an interim response after the first client was refused goes to none', async () => {
    const site = await startSharingSite(transport)
    const { access_token: token, refresh_token } = await site.sidecar.grant()
    const asked = [await site.ask({ token }), await site.ask()]
    const { response } = await site.waitForHeld(1)
    await site.sidecar.postToken({ token: refresh_token }, { path: '/oauth/revoke' })
    expect((await asked[0]?.response)?.status).toBe(401)
    response.writeEarlyHints({ link: '</a.css>; rel=preload' })
    response.end('x')
    expect((await asked[1]?.response)?.text).toBe('x')
    // Its connection is still in order.
    expect((await asked[0]?.connection.send({ path: '/x' }))?.status).toBe(401)
  })

  it('H183 a 206, a 304 and a redirect are shared as they are', async () => {
    const site = await startSharingSite(transport)
    for (const [i, status] of [206, 304, 302].entries()) {
      const fields = ['Range', 'bytes=0-0', 'If-None-Match', '"a"']
      const asked = [await site.ask({ fields }), await site.ask({ fields })]
      ;(await site.waitForHeld(i + 1)).response.writeHead(status, { ETag: '"a"' }).end()
      for (const exchange of asked) {
        const { status: got, header } = await exchange.response.then((each) => ({
          status: each.status,
          header: each.header('etag'),
        }))
        expect([got, header]).toEqual([status, '"a"'])
      }
    }
    expect(site.held).toHaveLength(3)
  })

  it('H185 clients that share a wait for a place are refused when they have waited as long as one may', async () => {
    const upstream = { max_in_flight: 1, queue: { timeout: '10s' } }
    const site = await startSharingSite(transport, {}, upstream)
    await site.ask({ path: '/hold' })
    await site.waitForHeld(1)
    const asked = []
    for (let i = 0; i < 6; i += 1) asked.push((await site.ask()).response)
    const { clock } = site.sidecar
    await clock.advance(9_999)
    expect(await site.sidecar.metric('postern_upstream_queued')).toBe(1)
    await clock.advance(1)
    for (const response of asked) expect((await response).status).toBe(500)
    const rows = (await recent(site.sidecar)).filter(({ path }) => path === '/status')
    const found = await Promise.all(rows.map(({ id }) => explanationsOf(site.sidecar, id)))
    const waited = found.filter((each) => JSON.stringify(each).includes('waiting for a place at the device'))
    // The first one, and one for those that had not waited that long.
    expect([rows.length, waited.length <= 2]).toEqual([6, true])
  })

  it('H183 a client that Postern does not sign in gets nothing of a response to one that it does', async () => {
    const { device, password } = await startBasicDevice()
    const file = join(temporaryDirectory(), 'device-password')
    writeFileSync(file, password)
    const auth = { kind: 'basic', user: 'admin', password: { file } }
    const upstream = { auth, share: { paths: ['/status'], for: '1h' } }
    const config = { upstream, public_paths: ['/status'] }
    const sidecar = await startSidecar({ transport, device, config })
    const token = await sidecar.token()
    const path = '/status'
    expect((await sidecar.request({ token, path })).text).toBe('from the device')
    expect((await sidecar.request({ path })).status).toBe(401)
    expect((await sidecar.request({ token, path })).header('age')).toBeDefined()
  })

  it('H183 a response of the tolerant rules, and one that ends with the connection, is shared', async () => {
    let asked = 0
    const device = await startRawDevice(async (peer) => {
      await peer.waitFor('\r\n\r\n')
      asked += 1
      peer.end('HTTP/1.1 200 OK\n\nall of it')
    })
    const upstream = { share: { paths: ['/'], for: '1h' }, parser: 'tolerant' }
    const sidecar = await startSidecar({ transport, device, config: { upstream } })
    const token = await sidecar.token()
    for (let i = 0; i < 3; i += 1) expect((await sidecar.request({ token })).text).toBe('all of it')
    expect(asked).toBe(1)
    expect((await explained(sidecar, '/')).Device).toContain('Shared: it answered 200')
  })
})

it.each([
  ['1.0', '1.1'],
  ['1.1', '1.0'],
])(
  'H183 an HTTP/%s client gets the response that an HTTP/%s client asked for, as its version allows',
  async (later, first) => {
    const site = await startSharingSite('http1', { for: '1h' })
    const read = async (version: string): Promise<string> => {
      const peer = await rawConnection(site.sidecar.url)
      const fields = `Host: a\r\nAuthorization: Bearer ${site.token}\r\nConnection: close\r\n`
      peer.write(`GET /status HTTP/${version}\r\n${fields}\r\n`)
      return peer.closed
    }
    const asked = read(first)
    const { response } = await site.waitForHeld(1)
    response.write('one ')
    response.end('two')
    const texts = new Map([
      [first, await asked],
      [later, await read(later)],
    ])
    expect(texts.get('1.0')).toMatch(/\r\n\r\none two$/)
    expect(texts.get('1.0')).not.toMatch(/transfer-encoding/i)
    expect(texts.get('1.1')).toMatch(/^HTTP\/1\.1 200/)
    expect(texts.get('1.1')?.replaceAll(/\r\n[0-9a-f]+\r\n/g, '')).toContain('one two')
    expect(site.held).toHaveLength(1)
  },
)
