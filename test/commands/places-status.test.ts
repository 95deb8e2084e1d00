import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import type { StatusAnswer } from '../../src/admin/control-socket.ts'
import { control } from '../../src/commands/control.ts'
import { statusCommand } from '../../src/commands/status.ts'
import { stillClock } from '../support/clock.ts'
import { startDevice, startHoldingDevice } from '../support/device.ts'
import { startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'

const HOUR = 3_600_000

const stateDir = ({ directory }: TestSidecar): string => join(directory, 'state')

async function placesOf(sidecar: TestSidecar): Promise<StatusAnswer['places'][number]> {
  const { places } = await control<StatusAnswer>(stateDir(sidecar), { method: 'GET', path: '/status' })
  return places[0] ?? expect.fail('there are no places')
}

async function printed(sidecar: TestSidecar): Promise<string> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const sets = ['upstream.url=http://127.0.0.1', 'password.file=/password', `state_dir=${stateDir(sidecar)}`]
  expect(await statusCommand({ json: false, set: sets }, { stdout, stderr, env: {} })).toBe(0)
  stdout.end()
  return text(stdout)
}

it('`status` says that requests waited for places over the last day, and how many would do', async () => {
  const { device, held } = await startHoldingDevice()
  const clock = stillClock()
  const sidecar = await startSidecar({ device, clock, config: { upstream: { max_in_flight: undefined } } })
  let token = await sidecar.token()
  let answered = 0
  /** Sends so many requests. The device answers those in the `places` after 10 ms, then the others. */
  const round = async (count: number, places: number): Promise<void> => {
    const responses = Array.from({ length: count }, () => sidecar.request({ token }))
    const end = answered + count
    while (answered < end) {
      const next = Math.min(end, answered + places)
      await device.waitForRequests(next)
      if (answered + places < end)
        await expect.poll(() => sidecar.metric('postern_upstream_queued')).toBe(end - next)
      await clock.advance(10)
      for (const response of held.slice(answered, next)) response.end('ok')
      answered = next
    }
    await Promise.all(responses)
  }
  const limit = () => sidecar.metric('postern_upstream_limit')
  for (let rounds = 0; rounds < 50 && (await limit()) < 4; rounds += 1) await round(2, 2)
  expect(await limit()).toBe(4)
  for (let rounds = 0; rounds < 50; rounds += 1) await round(4, 4)
  const before = await placesOf(sidecar)
  expect(before).toMatchObject({ limit: 4, waits: { waited: 0, refused: 0, matters: false, wouldDo: null } })
  expect(before.waits.requests).toBe(answered)
  expect(await printed(sidecar)).toMatch(/^ {2}in the last \w+ none of the requests waited$/m)

  // Four at a time wait for 10 ms, for 20, and so on up to 50.
  await round(24, 4)
  expect(await placesOf(sidecar)).toMatchObject({
    limit: 4,
    ceiling: null,
    waits: { requests: answered, waited: 20, refused: 0, matters: true, wouldDo: 8 },
  })
  expect(await printed(sidecar)).toMatch(
    /^ {2}in the last \w+ \d+ % of the requests waited, \d\d ms at p99: max_in_flight: \{max: 8\} would do, if the device takes as many$/m,
  )

  // The seconds of a day take a test too long: an hour passes at once.
  for (let hours = 0; hours < 24; hours += 1) await clock.leap(HOUR)
  token = await sidecar.token()
  await round(4, 4)
  const { waits } = await placesOf(sidecar)
  expect(waits).toMatchObject({ requests: 4, waited: 0, matters: false, wouldDo: null })
  expect(clock.wall() - waits.since).toBeGreaterThan(22 * HOUR)
})

it('another `max_in_flight` begins to count anew, and a fixed number is a maximum, too', async () => {
  const { device, held } = await startHoldingDevice()
  const clock = stillClock()
  const sidecar = await startSidecar({ device, clock, config: { upstream: { max_in_flight: 1 } } })
  const token = await sidecar.token()
  for (let sent = 0; sent < 100; sent += 2) {
    const responses = [1, 2].map(() => sidecar.request({ token }))
    for (const at of [sent, sent + 1]) {
      await device.waitForRequests(at + 1)
      if (at === sent) await expect.poll(() => sidecar.metric('postern_upstream_queued')).toBe(1)
      await clock.advance(25)
      held[at]?.end('ok')
    }
    await Promise.all(responses)
  }
  const waits = { requests: 100, waited: 50, matters: true, wouldDo: 2 }
  expect(await placesOf(sidecar)).toMatchObject({ learned: false, waits })
  await sidecar.reload({ upstream: { max_in_flight: { max: 2 } } })
  expect((await placesOf(sidecar)).waits).toMatchObject({ requests: 0, waited: 0, wouldDo: null })
})

it('`status` shows the streams and WebSockets beside the places, and the sum', async () => {
  const device = await startDevice((request, response) => {
    if (request.url !== '/events') return void response.end('ok')
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write('the beginning')
  })
  acceptWebSockets(device)
  const upstream = { max_in_flight: 2, max_streams: 1, max_tunnels: 3 }
  const routes = { '/cam/': { url: device.url }, '/other/': { url: device.url, max_in_flight: 1 } }
  const sidecar = await startSidecar({ device, config: { upstream: { ...upstream, routes } } })
  const token = await sidecar.token()
  const stream = (await sidecar.connect()).start({
    path: '/events',
    fields: ['Authorization', `Bearer ${token}`],
  })
  stream.response.catch(() => {})
  await stream.waitFor('the beginning')
  await openWebSocket(sidecar.url, { token })
  await openWebSocket(sidecar.url, { token, path: '/cam/' })
  // The route to the same address has the same places, and streams and WebSockets of its own.
  expect(await placesOf(sidecar)).toMatchObject({
    ...{ route: null, used: 0, limit: 2 },
    ...{ streams: { used: 1, limit: 2 }, tunnels: { used: 2, limit: 6 } },
  })
  const shown = await printed(sidecar)
  expect(shown).toContain(
    'device: 0 of 2 places in use\n  with 1 of 2 streams and 2 of 6 WebSockets, 3 of 10 at once\n',
  )
  // With one place, streams hold it.
  expect(shown).toContain(
    '/other/: 0 of 1 place in use\n  with 0 of 0 streams and 0 of 3 WebSockets, 0 of 4 at once\n',
  )
  stream.abort()
})
