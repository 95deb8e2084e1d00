import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import { revokeCommand } from '../../src/commands/revoke.ts'
import type { Status } from '../../src/commands/status.ts'
import {
  bearer,
  DOWNLOAD_SIZE,
  holdResponses,
  openResponse,
  openStreams,
  openTunnel,
  type Stream,
} from '../process/streams.ts'
import { readBody, startDevice } from '../support/device.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { nextSweep } from '../support/sweep.ts'
import { isInstalled, needs } from '../support/tools.ts'

const WEEK = 7 * 24 * 3_600_000

interface Watched {
  readonly sidecar: TestSidecar
  readonly token: string
  readonly refreshToken: string
  readonly streams: readonly Stream[]
  readonly download: Stream
}

/** A sidecar with open streams of each kind and a download, of one grant. */
async function watch(config: YamlPart = {}): Promise<Watched> {
  const device = await startDevice()
  holdResponses(device)
  const sidecar = await startSidecar({ transport: 'tls', device, config })
  return { sidecar, ...(await open(sidecar)) }
}

async function open(sidecar: TestSidecar): Promise<Omit<Watched, 'sidecar'>> {
  const { access_token: token, refresh_token: refreshToken } = await sidecar.grant()
  const [events, download, more, tunnel] = await openStreams(sidecar, token)
  const streams = [events, more, tunnel].filter((stream) => stream !== undefined)
  return { token, refreshToken, streams, download: download as Stream } // `openStreams` opens four
}

const ended = async ({ streams }: Pick<Watched, 'streams'>): Promise<void> => {
  await Promise.all(streams.map((stream) => stream.broken))
}

const isOpen = ({ streams }: Pick<Watched, 'streams'>): boolean => streams.every((stream) => stream.open)

const stateDir = ({ directory }: TestSidecar): string => join(directory, 'state')

const statusOf = (sidecar: TestSidecar): Promise<Status> =>
  control(stateDir(sidecar), { method: 'GET', path: '/status' })

async function revoke(sidecar: TestSidecar, command: object): Promise<number> {
  const answer = await control(stateDir(sidecar), { method: 'POST', path: '/revoke', command })
  return 'revoked' in answer ? Number(answer.revoked) : 0
}

const ENDINGS: readonly (readonly [string, YamlPart, (watched: Watched) => unknown])[] = [
  ['has expired', {}, ({ sidecar }) => sidecar.clock.advance(WEEK)],
  ['was evicted', { capacity: 2 }, ({ sidecar }) => sidecar.grant()],
  [
    'has only a spent refresh token left',
    { rotate_refresh: true },
    async ({ sidecar, refreshToken }) => {
      await sidecar.refresh(refreshToken)
      await sidecar.clock.advance(WEEK)
    },
  ],
]

for (const store of ['memory', 'file'])
  it.each(ENDINGS)(
    `C8 H206 streams end with their grant, and a download goes on: it %s (${store})`,
    async (_how, tokens, end) => {
      const watched = await watch({ tokens: { store, ...tokens } })
      const { sidecar, download } = watched
      await end(watched)
      await ended(watched)
      expect(download.open).toBe(true)
      expect(await sidecar.metric('postern_requests_ended_total', { reason: 'expired' })).toBe(3)
      const lines = sidecar.logLines().filter((line) => line.includes('"ended_for":"unauthorized: expired"'))
      expect(lines.map((line) => JSON.parse(line).status).sort()).toEqual([101, 200, 200])
    },
  )

it('H206 a response without a length is a stream when it lasts, and a file or an upload is none', async () => {
  const device = await startDevice()
  const held = holdResponses(device)
  const sidecar = await startSidecar({
    transport: 'tls',
    device,
    config: { upstream: { stream_after: '1ms' } },
  })
  const token = await sidecar.token()
  const [log, backup] = await Promise.all([
    openResponse(sidecar, bearer(token), '/log', 'tls'),
    openResponse(sidecar, bearer(token), '/backup', 'h2'),
  ])
  const connection = await sidecar.connect()
  const upload = connection.start({
    method: 'POST',
    path: '/upload',
    open: true,
    fields: [...bearer(token), 'Content-Length', '6'],
  })
  upload.write('abc')
  device.handle(async (request, response) => response.end(`got ${await readBody(request)}`))
  await device.waitForRequests(3)
  await sidecar.clock.advance(WEEK)
  await log.broken
  await nextSweep(sidecar.clock)
  expect(backup.open).toBe(true)
  held.get('/backup')?.end()
  upload.end('def')
  expect((await upload.response).text).toBe('got abcdef')
})

it.each([
  ['text/event-stream', 'tls'],
  ['multipart/x-mixed-replace; boundary=b', 'h2'],
] as const)(
  'C8 H206 a stream of the type %s ends with its grant, also with a length (%s)',
  async (type, transport) => {
    const device = await startDevice((_request, response) => {
      response.writeHead(200, { 'Content-Type': type, 'Content-Length': DOWNLOAD_SIZE })
      response.write('first piece')
    })
    const sidecar = await startSidecar({ transport: 'tls', device })
    const stream = await openResponse(sidecar, bearer(await sidecar.token()), '/camera', transport)
    await sidecar.clock.advance(WEEK)
    await stream.broken
    expect(await sidecar.metric('postern_requests_ended_total', { reason: 'expired' })).toBe(1)
  },
)

it('C8 H206 a response that becomes a stream after the end of its grant ends, too', async () => {
  const device = await startDevice()
  const sidecar = await startSidecar({ transport: 'tls', device, config: { tokens: { capacity: 2 } } })
  const token = await sidecar.token()
  const asked = Promise.withResolvers<() => void>()
  device.handle((_request, response) => {
    asked.resolve(() => response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('first piece'))
  })
  const opening = openResponse(sidecar, bearer(token), '/events', 'tls')
  const answer = await asked.promise
  await sidecar.grant()
  await nextSweep(sidecar.clock)
  answer()
  await (await opening).broken
})

it('H206 a grant that goes on keeps its streams when an access token expires', async () => {
  const watched = await watch()
  const { sidecar, token, download } = watched
  await sidecar.clock.advance(WEEK / 2)
  await nextSweep(sidecar.clock)
  expect((await sidecar.request({ token })).status).toBe(401)
  await nextSweep(sidecar.clock)
  expect(isOpen(watched)).toBe(true)
  expect(download.open).toBe(true)
})

it('C8 H207 a changed password ends a download whose grant has expired', async () => {
  const watched = await watch()
  const { sidecar, download } = watched
  await sidecar.clock.advance(WEEK)
  await ended(watched)
  writeFileSync(sidecar.passwordFile, 'another password\n')
  await download.broken
})

it.each([
  ['all', () => ({ all: true })],
  ['client', () => ({ client: '127.0.0.1' })],
  ['grant', (grant: string) => ({ grant })],
])(
  'H207 status shows a download whose grant has expired, and a revocation by %s ends it',
  async (_by, by) => {
    const watched = await watch()
    const { sidecar, download } = watched
    const [grant] = (await statusOf(sidecar)).grants ?? []
    await sidecar.clock.advance(WEEK)
    await ended(watched)
    const { grants, unfinished } = await statusOf(sidecar)
    expect(grants).toEqual([])
    expect(unfinished).toEqual([{ grant: grant?.id, client: '127.0.0.1', startedAt: expect.any(Number) }])
    expect(await revoke(sidecar, by(grant?.id ?? ''))).toBe(1)
    await download.broken
    expect((await statusOf(sidecar)).unfinished).toBeUndefined()
    expect(await sidecar.metric('postern_requests_ended_total', { reason: 'revoked' })).toBe(1)
  },
)

it('H208 the grant of a quiet stream is not evicted while another one is left', async () => {
  const watched = await watch({ tokens: { capacity: 6 } })
  const { sidecar, token } = watched
  const others = [await sidecar.token(), await sidecar.token()]
  for (const other of others) await sidecar.request({ token: other })
  await sidecar.grant()
  expect((await sidecar.request({ token: others[0] ?? '' })).status).toBe(401)
  await nextSweep(sidecar.clock)
  expect(isOpen(watched)).toBe(true)
  expect((await sidecar.request({ token })).status).toBe(200)
})

let redis: RedisServer
let prefixes = 0
beforeAll(async () => {
  if (isInstalled('redis-server')) redis = await startRedis()
})

async function fleet(tokens: YamlPart = {}): Promise<readonly [Watched, TestSidecar]> {
  needs('redis-server')
  prefixes += 1
  const config = {
    tokens: { store: `valkey://${redis.at}`, ...tokens },
    store: { prefix: `ends-${prefixes}` },
    oauth: { revocation_path: '/oauth/revoke' },
  }
  return [await watch(config), await startSidecar({ config })]
}

/** The server has the time of a fleet. So long a busy machine may take to open the streams. */
const LIFETIME = '5s'

it('C8 H206 in a fleet, streams end with the refresh token', async () => {
  const [watched] = await fleet({ access_lifetime: LIFETIME, refresh_lifetime: '6s' })
  const { sidecar, download } = watched
  await ended(watched)
  expect(download.open).toBe(true)
  await expect.poll(async () => (await statusOf(sidecar)).unfinished?.length).toBe(1)
  expect(await revoke(sidecar, { all: true })).toBe(1)
  await download.broken
})

it('H206 in a fleet, a grant that goes on keeps its streams when an access token expires', async () => {
  const [watched] = await fleet({ access_lifetime: LIFETIME })
  const { sidecar, token } = watched
  await expect.poll(async () => (await sidecar.request({ token })).status).toBe(401)
  for (let sweep = 0; sweep < 3; sweep += 1) await nextSweep(sidecar.clock)
  expect(isOpen(watched)).toBe(true)
})

it.each([
  ['evicted by the login at another sidecar', { capacity: 2 }, (other: TestSidecar) => other.grant(), true],
  ['revoked at another sidecar', {}, (other: TestSidecar) => revoke(other, { all: true }), false],
])('C8 H206 in a fleet, streams end when their grant is %s', async (_how, tokens, end, goesOn) => {
  const [watched, other] = await fleet(tokens)
  await end(other)
  await ended(watched)
  if (goesOn) expect(watched.download.open).toBe(true)
  else await watched.download.broken
})

it('C8 H207 in a fleet, a changed password ends a download whose grant was evicted', async () => {
  const [watched, other] = await fleet({ capacity: 2 })
  await other.grant()
  await ended(watched)
  writeFileSync(other.passwordFile, 'another password\n')
  await watched.download.broken
})

it('H207 in a fleet, `postern revoke` says what becomes of a download of an ended grant at another sidecar', async () => {
  const [watched, other] = await fleet({ capacity: 2 })
  const [grant] = (await statusOf(watched.sidecar)).grants ?? []
  await other.grant()
  await ended(watched)
  const set = ['upstream.url=http://127.0.0.1', 'password.file=/password', `state_dir=${stateDir(other)}`]
  const elsewhere = 'uploads and downloads of ended grants at other sidecars'
  const run = async (which: object): Promise<string> => {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()]
    const failed = await revokeCommand({ set, ...which }, { stdout, stderr, env: {} }).then(
      () => '',
      (error: unknown) => String(error),
    )
    stdout.end()
    return failed + (await text(stdout))
  }
  expect(await run({ client: '192.0.2.9' })).toContain(`${elsewhere} go on: run it there, too`)
  expect(watched.download.open).toBe(true)
  expect(await run({ grant: grant?.id })).toContain(
    `nothing revoked: no such grant; postern status lists the grants; ${elsewhere} end, too, and are not counted`,
  )
  await watched.download.broken
  expect(await run({ all: true })).toBe(`1 grant revoked; ${elsewhere} end, too, and are not counted\n`)
})

it('H208 in a fleet, a login at any sidecar evicts the grant of a quiet stream last', async () => {
  const [watched, other] = await fleet({ capacity: 6 })
  await expect.poll(() => redis.command('EXISTS', `{ends-${prefixes}}:held`)).toBe('1')
  const others = [await other.token(), await other.token()]
  await other.grant()
  expect((await other.request({ token: others[0] ?? '' })).status).toBe(401)
  await nextSweep(watched.sidecar.clock)
  expect(isOpen(watched)).toBe(true)
  expect((await watched.sidecar.request({ token: watched.token })).status).toBe(200)
})

it('H206 a tunnel alone ends with its grant', async () => {
  const device = await startDevice()
  holdResponses(device)
  const sidecar = await startSidecar({ device })
  const tunnel = await openTunnel(sidecar, bearer(await sidecar.token()))
  await sidecar.clock.advance(WEEK)
  await tunnel.broken
})
