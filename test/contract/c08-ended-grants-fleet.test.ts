import { writeFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { beforeAll, expect, it } from 'vitest'
import { revokeCommand } from '../../src/commands/revoke.ts'
import { realClock } from '../support/clock.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { nextSweep } from '../support/waiting.ts'
import { ended, isOpen, revoke, stateDir, statusOf, type Watched, watch } from './watched-streams.ts'

/** The server has the time of a fleet. So long a busy machine may take to open the streams. */
const SHORT = '5s'

let redis: RedisServer
let prefixes = 0
beforeAll(async () => {
  if (isInstalled('redis-server')) redis = await startRedis()
})

async function fleet(tokens: YamlPart = {}): Promise<readonly [Watched, TestSidecar]> {
  needs('redis-server')
  prefixes += 1
  const config = {
    tokens: { store: `valkey://${redis.at}`, access_lifetime: '1h', refresh_lifetime: '7d', ...tokens },
    store: { prefix: `ends-${prefixes}` },
    oauth: { revocation_path: '/oauth/revoke' },
  }
  return [await watch({ clock: realClock(), config }), await startSidecar({ clock: realClock(), config })]
}

it('C8 H206 in a fleet, streams end with the refresh token', async () => {
  const [watched] = await fleet({ access_lifetime: SHORT, refresh_lifetime: '6s' })
  const { sidecar, download } = watched
  await ended(watched)
  expect(download.open).toBe(true)
  await expect.poll(async () => (await statusOf(sidecar)).unfinished?.length).toBe(1)
  expect(await revoke(sidecar, { all: true })).toBe(1)
  await download.broken
})

it('H206 in a fleet, a grant that goes on keeps its streams when an access token expires', async () => {
  const [watched] = await fleet({ access_lifetime: SHORT })
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
