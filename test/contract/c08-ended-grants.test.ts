import { writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { bearer, DOWNLOAD_SIZE, holdResponses, openResponse, openTunnel } from '../process/streams.ts'
import { readBody, startDevice } from '../support/device.ts'
import { startSidecar, type YamlPart } from '../support/sidecar.ts'
import { nextSweep, passServing } from '../support/waiting.ts'
import {
  ACCESS_LIFETIME,
  ended,
  isOpen,
  LIFETIME,
  revoke,
  SHORT_LIVED,
  statusOf,
  type Watched,
  watch,
} from './watched-streams.ts'

const ENDINGS: readonly (readonly [string, YamlPart, (watched: Watched) => unknown])[] = [
  ['has expired', {}, ({ sidecar }) => sidecar.clock.advance(LIFETIME)],
  ['was evicted', { capacity: 2 }, ({ sidecar }) => sidecar.grant().then(() => nextSweep(sidecar.clock))],
  [
    'has only a spent refresh token left',
    { rotate_refresh: true },
    async ({ sidecar, refreshToken }) => {
      await sidecar.refresh(refreshToken)
      await sidecar.clock.advance(LIFETIME)
    },
  ],
]

for (const store of ['memory', 'file'])
  it.each(ENDINGS)(
    `C8 H206 streams end with their grant, and a download goes on: it %s (${store})`,
    async (_how, tokens, end) => {
      const watched = await watch({ config: { tokens: { store, ...tokens } } })
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
    config: SHORT_LIVED,
    bounds: { listen: { bodyTimeout: 3_600_000 } },
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
  await sidecar.clock.advance(LIFETIME)
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
    const sidecar = await startSidecar({ transport: 'tls', device, config: SHORT_LIVED })
    const stream = await openResponse(sidecar, bearer(await sidecar.token()), '/camera', transport)
    await sidecar.clock.advance(LIFETIME)
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
  const { broken } = await opening
  await nextSweep(sidecar.clock)
  await broken
})

it('H206 a grant that goes on keeps its streams when an access token expires', async () => {
  const watched = await watch()
  const { sidecar, token, download } = watched
  await sidecar.clock.advance(ACCESS_LIFETIME)
  await nextSweep(sidecar.clock)
  expect((await sidecar.request({ token })).status).toBe(401)
  await nextSweep(sidecar.clock)
  expect(isOpen(watched)).toBe(true)
  expect(download.open).toBe(true)
})

it('C8 H207 a changed password ends a download whose grant has expired', async () => {
  const watched = await watch()
  const { sidecar, download } = watched
  await sidecar.clock.advance(LIFETIME)
  await ended(watched)
  writeFileSync(sidecar.passwordFile, 'another password\n')
  await passServing(sidecar, download.broken, 5)
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
    await sidecar.clock.advance(LIFETIME)
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
  const watched = await watch({ config: { tokens: { capacity: 6 } } })
  const { sidecar, token } = watched
  const others = [await sidecar.token(), await sidecar.token()]
  for (const other of others) await sidecar.request({ token: other })
  await sidecar.grant()
  expect((await sidecar.request({ token: others[0] ?? '' })).status).toBe(401)
  await nextSweep(sidecar.clock)
  expect(isOpen(watched)).toBe(true)
  expect((await sidecar.request({ token })).status).toBe(200)
})

it('H206 a tunnel alone ends with its grant', async () => {
  const device = await startDevice()
  holdResponses(device)
  const sidecar = await startSidecar({ device, config: SHORT_LIVED })
  const tunnel = await openTunnel(sidecar, bearer(await sidecar.token()))
  await sidecar.clock.advance(LIFETIME)
  await tunnel.broken
})
