import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { mintToken } from '../../src/tokens/mint.ts'
import { FROM_PAGE, logIn } from '../browser/browsing.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { logInAs, makeNames, onTrial, passwordOf } from '../support/passwords.ts'
import { startRedis } from '../support/redis.ts'
import type { YamlPart } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { storeTimeout } from './other-bounds.ts'
import { prepareSite, type ServeOptions, type Serving, type Site } from './serve.ts'
import { bearer, holdResponses, openResponse, openTunnel, type Stream } from './streams.ts'

interface Started {
  readonly site: Site
  readonly served: Serving
}

async function start(config: YamlPart, options?: ServeOptions): Promise<Started> {
  const site = await prepareSite({ transport: 'tls', config })
  holdResponses(site.device)
  return { site, served: await (options === undefined ? site.serveHere() : site.serve(options)) }
}

/** Opens a stream over HTTP/1 and HTTP/2, a download and a tunnel with these fields; `path` begins their paths. */
function openAll(served: Serving, fields: readonly string[], from?: string): Promise<readonly Stream[]> {
  return Promise.all([
    openResponse(served, fields, '/events/1', 'tls', from),
    openResponse(served, fields, '/download/1', 'tls', from),
    openResponse(served, fields, '/events/2', 'h2', from),
    openTunnel(served, fields, { path: '/events/ws', from }),
  ])
}

async function reload({ site, served }: Started, part: YamlPart): Promise<void> {
  const known = served.logged('configuration reloaded').length
  site.configure(part)
  await expect.poll(() => served.logged('configuration reloaded').length).toBe(known + 1)
}

const ENDED = 'requests in flight ended: the new configuration does not admit them'

/** All of these break off, for this reason, which is counted and logged. */
async function expectEnded(
  { served }: Started,
  streams: readonly Stream[],
  reason: string,
  label: string,
): Promise<void> {
  await Promise.all(streams.map((stream) => stream.broken))
  expect(await served.waitForLog(ENDED)).toMatchObject({
    requests: streams.length,
    reasons: { [reason]: streams.length },
  })
  const lines = served.logged('request').filter((line) => line.ended_for === reason)
  expect(lines.map(({ end }) => end)).toEqual(streams.map(() => 'cut'))
  expect(await served.metric('postern_requests_ended_total', `reason="${label}"`)).toBe(streams.length)
}

const ALLOW = [{ methods: ['GET', 'UPGRADE'], paths: ['/events/'] }]

const areOpen = (streams: readonly Stream[]): boolean => streams.every(({ open }) => open)

const TRUSTED = { listen: { trusted_proxies: ['127.0.0.1'] } }
const BY_PROXY = ['X-Forwarded-For', '192.0.2.66']

it.each<readonly [string, YamlPart, readonly string[], string | undefined, YamlPart]>([
  ['listen.allow', {}, [], '127.0.0.2', { listen: { allow: ['127.0.0.1'] } }],
  [
    'listen.allow, behind a trusted proxy',
    TRUSTED,
    BY_PROXY,
    undefined,
    { listen: { allow: ['127.0.0.1'] } },
  ],
])(
  'H209 a reload ends what an address may no longer have open, and nothing else: %s',
  async (_key, config, fields, from, next) => {
    const started = await start(config)
    const credential = bearer((await started.served.grant()).access_token)
    const theirs = await openAll(started.served, [...credential, ...fields], from)
    const others = await openAll(started.served, credential)
    await reload(started, next)
    await expectEnded(started, theirs, 'address-denied', 'address_denied')
    expect(areOpen(others)).toBe(true)
  },
)

it('H209 a reload ends requests without a token on a path that is public no more', async () => {
  const started = await start({ public_paths: ['/events/', '/download/'] })
  const credential = bearer((await started.served.grant()).access_token)
  const [strangers, owned] = [await openAll(started.served, []), await openAll(started.served, credential)]
  await reload(started, { public_paths: ['/other'] })
  await expectEnded(started, strangers, 'unauthorized: missing', 'missing')
  expect(areOpen(owned)).toBe(true)
})

it('H209 with enforce: true again, a reload ends what was only observed', async () => {
  const started = await start({ enforce: false })
  const credential = bearer((await started.served.grant()).access_token)
  const observed = await openAll(started.served, bearer('not-a-token'))
  const admitted = await openAll(started.served, credential)
  await reload(started, { enforce: true })
  await expectEnded(started, observed, 'unauthorized: unknown', 'unknown')
  expect(areOpen(admitted)).toBe(true)
})

it('H298 a reload that ends the trial of an allow ends what only the trial admitted, also of a session, and nothing else', async () => {
  const names = makeNames({ admin: undefined, monitor: ALLOW })
  const started = await start({ ...onTrial(names, 'monitor'), browser: { login: 'on' } })
  const { served } = started
  const token = bearer((await logInAs(served, 'monitor')).access_token)
  const admin = bearer((await logInAs(served, 'admin')).access_token)
  const cookie = await logIn(served, { password: passwordOf('monitor') })
  const session = [...FROM_PAGE, 'Cookie', cookie]
  const kept = [
    await openResponse(served, token, '/events/1', 'h2'),
    await openTunnel(served, token, { path: '/events/ws' }),
    await openResponse(served, admin, '/log', 'tls'),
  ]
  const tried = [
    await openResponse(served, token, '/log', 'tls'),
    await openResponse(served, token, '/download/1', 'h2'),
    await openTunnel(served, token, { path: '/log/ws' }),
    await openResponse(served, session, '/log', 'h2'),
  ]
  await reload(started, names.config)
  await expectEnded(started, tried, 'insufficient-scope', 'insufficient_scope')
  expect(areOpen(kept)).toBe(true)
})

it.each([
  ['that is on trial no more', true],
  ['that a name had not before', false],
])(
  'H298 a reload with an allow %s ends what was forwarded with a field that it holds back',
  async (_what, hasAllow) => {
    const names = makeNames({ admin: undefined, monitor: ALLOW })
    const before = hasAllow
      ? onTrial(names, 'monitor')
      : { passwords: names.config.passwords.map(({ allow, ...entry }) => entry), password: undefined }
    const started = await start(before)
    const { served } = started
    const token = bearer((await logInAs(served, 'monitor')).access_token)
    const admin = bearer((await logInAs(served, 'admin')).access_token)
    const override = ['X-Original-URL', '/firmware']
    const kept = [
      await openResponse(served, token, '/events/1', 'h2'),
      await openResponse(served, [...admin, ...override], '/events/2', 'tls'),
    ]
    const held = [
      await openResponse(served, [...token, ...override], '/events/3', 'h2'),
      await openTunnel(served, [...token, ...override], { path: '/events/ws' }),
    ]
    await reload(started, names.config)
    await expectEnded(started, held, 'insufficient-scope: override', 'insufficient_scope')
    expect(areOpen(kept)).toBe(true)
  },
)

it('H209 H210 with browser.login: off, a reload ends the requests of sessions and revokes their grants', async () => {
  const started = await start({ browser: { login: 'on' } })
  const { served } = started
  const credential = bearer((await served.grant()).access_token)
  const cookie = await logIn(served)
  const theirs = await openAll(served, [...FROM_PAGE, 'Cookie', cookie])
  const others = await openAll(served, credential)
  await reload(started, { browser: { login: 'off' } })
  await expectEnded(started, theirs, 'unauthorized: missing', 'missing')
  expect(areOpen(others)).toBe(true)
  expect(await served.metric('postern_tokens_revoked_total', 'reason="browser_login_off"')).toBe(1)
  expect((await served.status()).grants).toHaveLength(1)
})

it('H209 H210 H275 while the shared store does not answer, a reload ends the same, and what it owes the store is paid', async () => {
  needs('redis-server')
  const redis = await startRedis()
  const config = {
    tokens: { store: `valkey://${redis.at}` },
    browser: { login: 'on' },
    public_paths: ['/log'],
    enforce: false,
  }
  const started = await start(config, { bounds: storeTimeout(2_000) })
  const { served } = started
  const credential = bearer((await served.grant()).access_token)
  const cookie = await logIn(served)
  const ofSession = [...FROM_PAGE, 'Cookie', cookie]
  const kept = await openResponse(served, credential, '/events/kept', 'h2')
  const denied = await openResponse(served, credential, '/events/denied', 'tls', '127.0.0.2')
  const stranger = await openResponse(served, [], '/log', 'h2')
  const session = await openTunnel(served, ofSession, { path: '/events/ws' })
  redis.freeze()
  // The store cannot say whose token it is, and the gate only observes.
  const unchecked = await openResponse(served, bearer(mintToken()), '/events/unchecked', 'tls')
  await reload(started, { listen: { allow: ['127.0.0.1'] }, public_paths: [], enforce: true })
  await Promise.all([denied.broken, stranger.broken, unchecked.broken])
  expect(served.logged(ENDED).map(({ reasons }) => reasons)).toEqual([
    { 'address-denied': 1, 'unauthorized: missing': 1, 'store-unavailable': 1 },
  ])
  expect(areOpen([kept, session])).toBe(true)
  await reload(started, { browser: { login: 'off' } })
  await session.broken
  await reload(started, { browser: { login: 'on' } })
  expect((await served.request({ path: '/', fields: ofSession })).status).toBe(401)
  redis.thaw()
  await expect.poll(() => redis.command('ZCOUNT', '{postern}:grants', '-inf', '(+inf')).toBe('1')
  await expect.poll(() => served.metric('postern_tokens_revoked_total', 'reason="browser_login_off"')).toBe(1)
  expect(kept.open).toBe(true)
})

it('H209 a reload that changes no right ends nothing', async () => {
  const started = await start({ public_paths: ['/events/'] })
  const streams = [
    ...(await openAll(started.served, bearer((await started.served.grant()).access_token))),
    await openResponse(started.served, [], '/events/1', 'h2'),
  ]
  await reload(started, { limits: { api: { requests: 999_999 } }, realm: 'another' })
  expect(started.served.logged(ENDED)).toEqual([])
  expect(areOpen(streams)).toBe(true)
})

it('H209 a request that still waits for the device is refused, as if it arrived now', async () => {
  const started = await start({ public_paths: ['/'] })
  const { site, served } = started
  site.device.handle(() => {})
  const waiting = served.request({ path: '/slow' })
  await site.device.waitForRequests(1)
  await reload(started, { public_paths: [] })
  expect((await waiting).status).toBe(401)
})

it('H209 a stream under the account at the device ends when its path is signed in no more', async () => {
  const file = join(temporaryDirectory(), 'device-password')
  writeFileSync(file, 'secret')
  const started = await start({
    upstream: { auth: { kind: 'basic', user: 'admin', password: { file } } },
    public_paths: [{ path: '/events/1', signed_in: true }, '/log'],
  })
  const signedIn = await openResponse(started.served, [], '/events/1', 'h2')
  const open = await openResponse(started.served, [], '/log', 'tls')
  await reload(started, { public_paths: ['/events/1', '/log'] })
  await expectEnded(started, [signedIn], 'unauthorized: missing', 'missing')
  expect(areOpen([open])).toBe(true)
})
