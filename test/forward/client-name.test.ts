import { expect, it } from 'vitest'
import { passing } from '../fleet/passing.ts'
import { logInAs, makeNames, type Names, OF_MONITOR } from '../support/passwords.ts'
import { explained } from '../support/records.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { describeProtocols, type Transport } from '../support/transports.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

const HEADERS = { upstream: { headers: { 'X-Client-Name': { client_name: true } } } }

async function start(
  config: YamlPart = {},
  transport: Transport = 'http1',
): Promise<{ sidecar: TestSidecar; names: Names; admin: string; monitor: string }> {
  const names = makeNames({ admin: undefined, monitor: OF_MONITOR })
  const sidecar = await startSidecar({ transport, config: { ...names.config, ...config } })
  const [admin, monitor] = [await logInAs(sidecar, 'admin'), await logInAs(sidecar, 'monitor')]
  return { sidecar, names, admin: admin.access_token, monitor: monitor.access_token }
}

const SPELLINGS = ['X-Client-Name', 'x-client-name', 'X_Client_Name', 'X-CLIENT_NAME']

describeProtocols('H197 {client_name: true}', (transport) => {
  it('H197 tells the device the name of the login, and a client cannot name itself', async () => {
    const { sidecar, admin, monitor } = await start({ ...HEADERS, public_paths: ['/public'] }, transport)
    const told = (): readonly string[] =>
      (sidecar.device.requests.at(-1)?.fields ?? []).flatMap((text, at, all) =>
        at % 2 === 0 && /^x[-_]client[-_]name$/i.test(text) ? [all[at + 1] ?? ''] : [],
      )
    for (const fields of [[], ...SPELLINGS.map((name) => [name, 'root'])]) {
      await sidecar.request({ path: '/status', token: monitor, fields })
      expect(told(), fields[0]).toEqual(['monitor'])
      await sidecar.request({ path: '/status', token: admin, fields })
      expect(told(), fields[0]).toEqual(['admin'])
      await sidecar.request({ path: '/public', fields })
      expect(told(), `${fields[0]} without a token`).toEqual([])
      // Its token does not admit the request, which is public: it counts as none.
      await sidecar.request({ method: 'POST', path: '/public', token: monitor, fields })
      expect(told(), `${fields[0]} with a token that does not count`).toEqual([])
    }
    // As an option of the connection, it would be removed behind the sidecar.
    const fields = ['Connection', 'x-client-name']
    if (transport === 'http1') {
      await sidecar.request({ path: '/status', token: monitor, fields })
      expect(told()).toEqual(['monitor'])
    }
  })
})

it('H197 with one password there is no name, and the field of a client is removed all the same', async () => {
  const sidecar = await startSidecar({ config: HEADERS })
  const token = await sidecar.token()
  await sidecar.request({ token, fields: ['X-Client-Name', 'root'] })
  expect(sidecar.device.requests.at(-1)?.header('x-client-name')).toBeUndefined()
})

it('H197 a repeated request that its token does not admit any more, to a public path, has no name', async () => {
  const { sidecar, names, admin } = await start({ ...HEADERS, public_paths: ['/public'] })
  const connection = await sidecar.connect()
  const name = async (): Promise<string | undefined> => {
    await connection.send({ path: '/public', fields: ['Authorization', `Bearer ${admin}`] })
    return sidecar.device.requests.at(-1)?.header('x-client-name')
  }
  for (let i = 0; i < 3; i += 1) expect(await name()).toBe('admin')
  names.set('admin', 'another password')
  const use = async () => (await sidecar.request({ token: admin })).status
  await expect.poll(passing([sidecar], use)).toBe(401)
  expect(await name()).toBeUndefined()
})

it.each([
  ['that the device is told do not share', HEADERS.upstream, 2],
  ['that the device is not told share', {}, 1],
])('H193 H197 names %s a response; each is judged by its own allow', async (_what, upstream, asked) => {
  const share = { paths: ['/status', '/other'], for: '1m' }
  const { sidecar, admin, monitor } = await start({ upstream: { share, ...upstream } })
  for (const token of [admin, monitor, admin, monitor])
    expect((await sidecar.request({ path: '/status', token })).status).toBe(200)
  expect(sidecar.device.requests).toHaveLength(asked)
  expect((await sidecar.request({ path: '/other', token: admin })).status).toBe(200)
  expect((await sidecar.request({ path: '/other', token: monitor })).status).toBe(400)
})

it('H197 a WebSocket has the name, too', async () => {
  const { sidecar, admin } = await start(HEADERS)
  const { upgrades } = acceptWebSockets(sidecar.device)
  await openWebSocket(sidecar.url, { token: admin, headers: { 'X-Client-Name': 'root' } })
  expect(upgrades.at(-1)?.headers['x-client-name']).toBe('admin')
})

it('H197 the name is in the log, in explain, in the list of logins and in the metrics', async () => {
  const { sidecar, admin, monitor } = await start()
  await sidecar.request({ path: '/status', token: monitor })
  await sidecar.request({ path: '/firmware', token: monitor })
  await sidecar.request({ path: '/other', token: admin })
  const lines = sidecar
    .logLines()
    .flatMap((line) => (line.includes('"msg":"request"') ? [JSON.parse(line)] : []))
  expect(lines.map(({ path, name, refusal }) => [path, name, refusal])).toEqual([
    ['/oauth/token', 'admin', undefined],
    ['/oauth/token', 'monitor', undefined],
    ['/status', 'monitor', undefined],
    ['/firmware', 'monitor', 'insufficient-scope'],
    ['/other', 'admin', undefined],
  ])
  for (const { grant, name } of lines) expect(grant).toMatch(new RegExp(`^${name}\\.[0-9a-f]{16}$`))
  expect(Object.values(await explained(sidecar, '/status')).join('\n')).toMatch(/of the password monitor/)
  const refused = Object.values(await explained(sidecar, '/firmware')).join('\n')
  expect(refused).toMatch(/of the password monitor/)
  expect(refused).toMatch(/may not make this request: see its allow/)
  const counted = (name: string, result: string): Promise<number> =>
    sidecar.metric('postern_named_requests_total', { name, result })
  expect(await counted('monitor', 'admitted')).toBe(1)
  expect(await counted('monitor', 'insufficient_scope')).toBe(1)
  expect(await counted('admin', 'admitted')).toBe(1)
  const grants = await sidecar.overview.grants()
  if (grants === 'unavailable') expect.unreachable()
  expect(grants.rows.map(({ id }) => id.replace(/\..*/, '')).sort()).toEqual(['admin', 'monitor'])
})

it('H197 per: name is one window for all logins of a name', async () => {
  const { sidecar, admin, monitor } = await start({ limits: { api: { requests: 3, per: 'name' } } })
  const other = (await logInAs(sidecar, 'monitor')).access_token
  const statusWith = async (token?: string): Promise<number> =>
    (await sidecar.request({ path: '/status', ...(token === undefined ? {} : { token }) })).status
  for (const token of [monitor, other, monitor]) expect(await statusWith(token)).toBe(200)
  for (const token of [monitor, other]) expect(await statusWith(token)).toBe(429)
  expect(await statusWith(admin)).toBe(200)
  // The latest is the one that is explained.
  await sidecar.clock.advance(1)
  // Without a valid token, the window is the client's.
  expect(await statusWith()).toBe(401)
  expect(Object.values(await explained(sidecar, '/status')).join('\n')).toMatch(/client 127\.0\.0\.1/)
})
