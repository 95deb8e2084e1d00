import { join } from 'node:path'
import { expect, it } from 'vitest'
import { explainCommand } from '../../src/commands/explain.ts'
import { startBlackHole } from '../support/black-hole.ts'
import { startDevice } from '../support/device.ts'
import { readPage } from '../support/pages.ts'
import { rawConnection, unusedPort } from '../support/raw.ts'
import { explained, recent } from '../support/records.ts'
import { startSidecar } from '../support/sidecar.ts'
import { acceptWebSockets, openWebSocket, refusedWebSocket } from '../support/websocket.ts'
import { tickingClock } from './ticking-clock.ts'

it('H160 tells which service refused a tunnel, and that an ambiguous path reached none', async () => {
  const camera = await startDevice()
  acceptWebSockets(camera)
  const upstream = { max_tunnels: 1, routes: { '/cam/': { url: camera.url } } }
  const sidecar = await startSidecar({ config: { upstream } })
  const token = await sidecar.token()
  await openWebSocket(sidecar.url, { token, path: '/cam/first' })
  expect(await refusedWebSocket(sidecar.url, { token, path: '/cam/second' })).toMatchObject({ status: 500 })
  await sidecar.request({ token, path: '/cam/../main' })
  expect(await explained(sidecar, '/cam/second')).toMatchObject({
    Decision: expect.stringMatching(/^Admitted\. Then refused with 500, overloaded\. /),
    Device: 'The service of upstream.routes /cam/. The request was not sent.',
  })
  expect(await explained(sidecar, '/cam/../main')).toMatchObject({
    Decision: expect.stringMatching(/refused with 400, invalid-request\. The path could be read as that/),
    Device: 'No service was chosen, and the request was not sent.',
  })
})

it('H160 a request for which no connection opened was not sent', async () => {
  const closed = `http://127.0.0.1:${await unusedPort()}`
  const routes = { '/closed/': { url: closed }, '/silent/': { url: await startBlackHole() } }
  const sidecar = await startSidecar({ clock: tickingClock(), config: { upstream: { routes } } })
  const token = await sidecar.token()
  await sidecar.request({ token, path: '/closed/get' })
  await refusedWebSocket(sidecar.url, { token, path: '/closed/socket' })
  const client = await rawConnection(sidecar.url)
  client.write(`GET /silent/left HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await expect.poll(() => sidecar.metric('postern_upstream_in_flight')).toBe(1)
  client.reset()
  for (const path of ['/closed/get', '/closed/socket']) {
    expect(await explained(sidecar, path), path).toMatchObject({
      Device: expect.stringMatching(
        /^The service of .* \/closed\/\. The request was not sent: it got no connection \(connection_refused\)\.$/,
      ),
      Time: expect.stringMatching(/ms for opening a connection\.$/),
    })
  }
  expect(await explained(sidecar, '/silent/left')).toMatchObject({
    Device: expect.stringMatching(/The request was not sent: it ended before a connection was open\.$/),
    Response: expect.stringMatching(/^None: the client left before it\./),
  })
})

it('H160 a request over the limit that passed, and one that counts with all clients beyond the largest number', async () => {
  const sidecar = await startSidecar({
    config: {
      enforce: false,
      listen: { trusted_proxies: ['127.0.0.1'] },
      limits: { max_keys: 1, api: { requests: 1 } },
    },
  })
  const from = (client: string, path: string): Promise<unknown> =>
    sidecar.request({ path, fields: ['X-Forwarded-For', client] })
  await from('192.0.2.1', '/first')
  await from('192.0.2.1', '/over')
  await from('192.0.2.2', '/other')
  expect(await explained(sidecar, '/over')).toMatchObject({
    Window: expect.stringMatching(
      /client 192\.0\.2\.1, .* All 1 requests were used\. This one did not count\. /,
    ),
    Response: expect.stringMatching(/^200, /),
  })
  expect(await explained(sidecar, '/other')).toMatchObject({
    Window: expect.stringMatching(
      /^That of all clients beyond limits\.max_keys together, .* Request 1 of 1\./,
    ),
  })
})

it('H160 H182 a client whose address is denied counts in no window', async () => {
  const sidecar = await startSidecar({
    config: { listen: { trusted_proxies: ['127.0.0.1'], allow: ['192.0.2.1'] } },
  })
  await sidecar.request({ path: '/denied', fields: ['X-Forwarded-For', '192.0.2.66'] })
  expect(await explained(sidecar, '/denied')).toMatchObject({
    Window: 'None: a client that may not connect counts nowhere.',
    Decision: expect.stringMatching(/, address-denied\. listen\.allow does not let /),
  })
})

/** The text with every id, time and number replaced, and without its line breaks, which depend on the numbers. */
function formOf(text: string): string {
  return text
    .replace(/\n +/g, ' ')
    .replace(/\b[0-9a-f]{32}\b/g, 'ID')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\d[\d.]*/g, 'N')
}

it('H160 the sample of docs/watching.md has the form of what the command prints', async () => {
  const [, sample = ''] = /prints:\n\n```text\n(.*?)```/s.exec(readPage('docs/watching.md')) ?? []
  expect(sample).toMatch(/^Id /)
  const sidecar = await startSidecar()
  const token = await sidecar.token()
  await sidecar.clock.advance(3_600_000)
  await sidecar.request({ path: '/api/v1/status', token })
  await explained(sidecar, '/api/v1/status')
  const id = (await recent(sidecar)).find(({ path }) => path === '/api/v1/status')?.id
  let printed = ''
  const stdout = { write: (text: string) => (printed += text), isTTY: true }
  const io = { stdout, stderr: stdout, env: {} }
  const set = ['upstream.url=http://127.0.0.1', `state_dir=${join(sidecar.directory, 'state')}`]
  const options = { set: [...set, `password.file=${join(sidecar.directory, 'password')}`], json: false }
  expect(await explainCommand(id, options, io)).toBe(0)
  expect(formOf(printed)).toBe(formOf(sample))
  for (const text of [printed, sample])
    expect(Math.max(...text.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(80)
})

it('H233 the list of the last requests fits 80 columns, and cuts no id, however long it and the path are', async () => {
  const sidecar = await startSidecar({ config: { listen: { trusted_proxies: ['127.0.0.1'] } } })
  const id = `a-long-id/${'x'.repeat(118)}`
  const fields = ['X-Request-Id', id, 'X-Forwarded-For', '2001:db8:1234:5678:9abc:def0:1234:5678']
  await sidecar.request({ path: `/${'long/'.repeat(40)}`, fields })
  await expect.poll(async () => (await recent(sidecar)).length).toBe(1)
  let printed = ''
  const stdout = { write: (text: string) => (printed += text), isTTY: true }
  const set = ['upstream.url=http://127.0.0.1', `state_dir=${join(sidecar.directory, 'state')}`]
  const options = { set: [...set, `password.file=${join(sidecar.directory, 'password')}`], json: false }
  expect(await explainCommand(undefined, options, { stdout, stderr: stdout, env: {} })).toBe(0)
  const wide = printed.split('\n').filter(({ length }) => length > 80)
  expect(wide).toContain(id)
  expect(wide.filter((line) => line.trim().includes(' '))).toEqual([])
})

it("H160 lists the device's own 500 behind a flood of 429, and by status and reason", async () => {
  const device = await startDevice((request, response) => {
    response.statusCode = request.url === '/broken' ? 500 : 200
    response.end()
  })
  const sidecar = await startSidecar({ device, config: { limits: { api: { requests: 3 } } } })
  const token = await sidecar.token()
  await sidecar.request({ path: '/broken', token })
  for (let i = 0; i < 2; i += 1) await sidecar.request({ path: '/good', token })
  await Promise.all(Array.from({ length: 60 }, () => sidecar.request({ path: '/flood', token })))
  await expect.poll(async () => (await recent(sidecar)).length).toBeGreaterThanOrEqual(64)

  const set = ['upstream.url=http://127.0.0.1', `state_dir=${join(sidecar.directory, 'state')}`]
  set.push(`password.file=${join(sidecar.directory, 'password')}`)
  const list = async (options: object, id?: string): Promise<string> => {
    let printed = ''
    const stdout = { write: (text: string) => (printed += text) }
    expect(
      await explainCommand(id, { set, json: false, ...options }, { stdout, stderr: stdout, env: {} }),
    ).toBe(0)
    return printed
  }
  expect(await list({})).toContain('GET /broken')
  const broken = await list({ status: '5xx' })
  expect([broken.includes('GET /broken'), broken.includes('/flood')]).toEqual([true, false])
  const limited = await list({ reason: 'rate-limited' })
  expect([limited.includes('GET /broken'), limited.includes('GET /flood')]).toEqual([false, true])
  expect(await list({ reason: 'SECRET' })).toBe(
    'no such request is remembered; reasons: rate-limited; statuses: 200, 429, 500\n',
  )
  expect(JSON.parse(await list({ status: '500', json: true })).requests).toHaveLength(1)
  await expect(list({ status: '5' })).rejects.toThrow('--status: must be a status')
  await expect(list({ reason: 'upstream' }, 'an-id')).rejects.toThrow('leave out --reason and --status')
})
