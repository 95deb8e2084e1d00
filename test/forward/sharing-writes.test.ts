import { expect, it } from 'vitest'
import { logInAs, makeNames } from '../support/passwords.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { describeProtocols, describeTransports, rowsOver } from '../support/transports.ts'
import { acceptWebSockets, dial } from '../support/websocket.ts'
import { startSharingSite } from './sharing-site.ts'

describeProtocols('Sharing beside changes', (transport) => {
  it.each(
    rowsOver(transport, [
      ['POST', { method: 'POST', path: '/hold' }],
      ['DELETE', { method: 'DELETE', path: '/status' }],
      ['a GET with a query, which much firmware takes for a change', { path: '/hold?on' }],
      ['a GET with a body, which programs read as a form', { method: 'GET', path: '/hold', body: 'on' }],
      ['a GET whose field names another method', { fields: ['X-HTTP-Method-Override', 'PUT'] }],
      ['a GET whose field names another method in other letters', { fields: ['x_http.method', 'PUT'] }],
      ['a GET whose field names another path', { fields: ['X-Original-URL', '/set?on'] }],
      ['a GET whose field names another path in other letters', { fields: ['Request~URI', '/set?on'] }],
    ]),
  )(
    'H184 a response that began before %s was admitted, or answered, is joined no more',
    async (_name, change) => {
      const site = await startSharingSite(transport)
      const before = await site.ask()
      const writer = await site.ask(change)
      const [during, joined] = [await site.ask(), await site.ask()]
      await site.passUntilHeld(3)
      // The head of its answer reaches the writer.
      site.held[1]?.response.write('done')
      await writer.head
      const answered = await site.ask()
      site.held[1]?.response.end()
      await writer.response
      const after = await site.ask()
      await site.passUntilHeld(5)
      for (const [i, { response }] of site.held.entries()) response.end(`${i}`)
      const asked = [before, during, joined, answered, after]
      const texts = await Promise.all(asked.map(async ({ response }) => (await response).text))
      expect(texts).toEqual(['0', '2', '2', '3', '4'])
    },
  )

  it('H184 H203 a request whose `allow` takes such a field away from it only reads, and shares', async () => {
    const names = makeNames({ admin: undefined, reader: 'read' })
    const share = { paths: ['/status'], for: '1h' }
    const sidecar = await startSidecar({ transport, config: { ...names.config, upstream: { share } } })
    const token = (await logInAs(sidecar, 'reader')).access_token
    for (const fields of [[], ['X-Original-URL', '/set?on'], ['X-HTTP-Method', 'PUT'], []])
      expect((await sidecar.request({ path: '/status', token, fields })).status).toBe(200)
    expect(sidecar.device.requests).toHaveLength(1)
  })

  it('H184 what a trusted proxy cut off the path makes no request a change', async () => {
    const config = {
      listen: { trusted_proxies: ['127.0.0.1'] },
      upstream: { share: { paths: ['/status'], for: '1h' } },
    }
    const sidecar = await startSidecar({ transport, config })
    const token = await sidecar.token()
    const prefixes = ['/one', '/two', '/one', '/two']
    for (const prefix of prefixes)
      await sidecar.request({ path: '/status', token, fields: ['X-Forwarded-Prefix', prefix] })
    expect(sidecar.device.requests.map((each) => each.header('x-forwarded-prefix'))).toEqual(['/one', '/two'])
  })

  it('H184 a change that fails ends sharing, too, and one that the gate refuses does not', async () => {
    const site = await startSharingSite(transport)
    const writer = await site.ask({ method: 'POST', path: '/hold' })
    await site.waitForHeld(1)
    const before = await site.ask()
    await site.waitForHeld(2)
    site.held[0]?.response.destroy()
    expect((await writer.response).status).toBe(500)
    const after = await site.ask()
    await site.passUntilHeld(3)
    expect((await (await site.ask({ method: 'POST', token: 'x' })).response).status).toBe(401)
    const joined = await site.ask()
    for (const [i, { response }] of site.held.entries()) if (i > 0) response.end(`${i}`)
    const texts = await Promise.all(
      [before, after, joined].map(async ({ response }) => (await response).text),
    )
    expect(texts).toEqual(['1', '2', '2'])
  })
})

describeTransports(
  'Sharing beside upgrades',
  (transport) => {
    it('H184 a response that began before an upgrade was admitted, or answered, is joined no more', async () => {
      const site = await startSharingSite(transport)
      const { server } = acceptWebSockets(site.device)
      const answer = Promise.withResolvers<void>()
      server.shouldHandle = () => true
      site.device.server.removeAllListeners('upgrade')
      const upgrade = new Promise<void>((resolve) =>
        site.device.server.on('upgrade', (request, socket, early) => {
          resolve()
          answer.promise.then(() => server.handleUpgrade(request, socket, early, () => {}))
        }),
      )
      const before = await site.ask()
      const socket = dial(site.sidecar.url, { path: '/socket', token: site.token })
      await upgrade
      site.alsoCame()
      const during = await site.ask()
      const open = new Promise((resolve) => socket.once('open', resolve))
      answer.resolve()
      await open
      const after = await site.ask()
      await site.passUntilHeld(3)
      for (const [i, { response }] of site.held.entries()) response.end(`${i}`)
      const texts = await Promise.all(
        [before, during, after].map(async ({ response }) => (await response).text),
      )
      expect(texts).toEqual(['0', '1', '2'])
    })
  },
  ['http1'],
)

it('H184 a change at another service of the device counts', async () => {
  let state = 'old'
  const device = await startRawDevice(async (peer) => {
    const head = await peer.waitFor('\r\n\r\n')
    if (head.startsWith('POST')) state = 'new'
    peer.end(`HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n${state}`)
  })
  const share = { paths: ['/status'], for: '1h' }
  const routes = { '/other/': { url: device.url } }
  const sidecar = await startSidecar({ device, config: { upstream: { share, routes } } })
  const token = await sidecar.token()
  const read = async (): Promise<string> => (await sidecar.request({ token, path: '/status' })).text
  expect(await read()).toBe('old')
  await sidecar.request({ token, path: '/other/set', method: 'POST' })
  expect(await read()).toBe('new')
})

it('H183 a service of `upstream.routes` shares its paths, too', async () => {
  let count = 0
  const device = await startRawDevice(async (peer) => {
    await peer.waitFor('\r\n\r\n')
    count += 1
    peer.end(`HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${count}`)
  })
  const routes = { '/other/': { url: device.url } }
  const share = { paths: ['/other/state'], for: '1h' }
  const sidecar = await startSidecar({ device, config: { upstream: { share, routes } } })
  const token = await sidecar.token()
  for (const [path, text] of [
    ['/other/state', '1'],
    ['/other/state', '1'],
    ['/state', '2'],
    ['/other', '3'],
    ['/other/state', '1'],
  ])
    expect((await sidecar.request({ token, path: path ?? '' })).text).toBe(text)
})
