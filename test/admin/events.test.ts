import { expect, it } from 'vitest'
import { createTimeline } from '../../src/overview/timeline.ts'
import { createLogOn } from '../../src/record/log.ts'
import { stillClock } from '../support/clock.ts'
import { rawConnection } from '../support/raw.ts'
import { grantRow, startAdmin } from './viewing.ts'

it('H154 a stream begins with the whole picture and has every second after it', async () => {
  const viewed = await startAdmin()
  const { overview } = viewed
  overview.grantRows = [grantRow('b'), grantRow('a')]
  const stream = await viewed.stream()
  const { headers, statusCode } = stream.response
  expect([
    statusCode,
    headers['content-type'],
    headers['cache-control'],
    headers['x-accel-buffering'],
  ]).toEqual([200, 'text/event-stream', 'no-store', 'no'])
  const start = await stream.next('start')
  expect(start.data).toMatchObject({
    about: { run: 'one' },
    mayRevoke: false,
    signedIn: false,
    condition: { ready: true },
  })
  expect(start.data.points).toHaveLength(1)
  expect(start.id).toBe(String(start.data.points[0].time))
  expect((await stream.next('grants')).data).toEqual({
    total: 2,
    changed: [grantRow('b'), grantRow('a')],
    removed: [],
  })

  await overview.tick()
  const point = await stream.next('point')
  expect(point.id).toBe(String(point.data.time))
  overview.ready = false
  overview.entries.push({ id: 1, time: 1, level: 'warn', text: 'x', details: '', times: 1 })
  overview.grantRows = [grantRow('a', 7), grantRow('c')]
  await overview.tick()
  await stream.next('point')
  expect((await stream.next('condition')).data).toEqual({ ready: false })
  expect((await stream.next('timeline')).data).toHaveLength(1)
  expect((await stream.next('grants')).data).toEqual({
    total: 2,
    changed: [grantRow('a', 7), grantRow('c')],
    removed: ['b'],
  })

  await overview.tick()
  await overview.tick()
  await stream.next('point')
  await stream.next('point')
  const names = stream.received.map(({ name }) => name)
  expect(names.filter((name) => name === 'condition')).toHaveLength(1)
  expect(names.filter((name) => name === 'grants')).toHaveLength(2)
})

it('H150 H154 a log line that comes again replaces its entry, and is sent once for each second in which it came', async () => {
  const viewed = await startAdmin()
  const log = createLogOn('info', { write: () => {} })
  Object.assign(viewed.overview, { timeline: createTimeline(log, viewed.clock).entries })
  const line = { level: 'warn', text: 'again', details: '' }
  log.warn('again')
  const stream = await viewed.stream()
  expect((await stream.next('start')).data.timeline).toEqual([
    { ...line, id: 1, time: expect.any(Number), times: 1 },
  ])
  log.warn('again')
  log.warn('again')
  await viewed.overview.tick()
  expect((await stream.next('timeline')).data).toMatchObject([{ ...line, id: 1, times: 3 }])
  await viewed.overview.tick()
  log.warn('again')
  log.info('another')
  await viewed.overview.tick()
  expect((await stream.next('timeline')).data).toMatchObject([
    { ...line, id: 1, times: 4 },
    { id: 2, text: 'another', times: 1 },
  ])
  expect(stream.received.filter(({ name }) => name === 'timeline')).toHaveLength(2)
})

it('H154 a stream that is resumed has only what is new, whatever its last id says', async () => {
  const viewed = await startAdmin()
  await viewed.overview.tick()
  const [, second] = viewed.overview.points(0)
  const resumed = await viewed.stream({ headers: { 'Last-Event-ID': String((second?.time ?? 0) - 1) } })
  expect((await resumed.next('start')).data.points).toEqual([second])
  for (const id of ['9'.repeat(15), '9'.repeat(8000), '-1', 'NaN', '1e3', '__proto__']) {
    const stream = await viewed.stream({ headers: { 'Last-Event-ID': id } })
    expect((await stream.next('start')).data.points, id.slice(0, 20)).toHaveLength(2)
    stream.close()
  }
})

it('H154 the total of the grants is that of all, or null if the shared store does not say', async () => {
  const viewed = await startAdmin()
  const { overview } = viewed
  overview.grantRows = [grantRow('a')]
  overview.grantTotal = 1_500
  const stream = await viewed.stream()
  expect((await stream.next('grants')).data).toEqual({
    total: 1_500,
    changed: [grantRow('a')],
    removed: [],
  })
  overview.grantRows = 'unavailable'
  await overview.tick()
  await overview.tick()
  expect((await stream.next('grants')).data).toEqual({ total: null, changed: [], removed: [] })
})

it('H154 serves 16 streams, and nothing runs without one', async () => {
  const viewed = await startAdmin()
  const { overview } = viewed
  await viewed.ask('/')
  await overview.tick()
  expect([overview.listeners, overview.asked]).toEqual([0, 0])
  const streams = await Promise.all(Array.from({ length: 16 }, () => viewed.stream()))
  expect(overview.listeners).toBe(1)
  const before = overview.asked
  await overview.tick()
  expect(overview.asked - before).toBe(1)
  const { status, headers, text } = await viewed.ask('/page/events')
  expect([status, headers['retry-after'], JSON.parse(text).error]).toEqual([503, '10', 'too_many_viewers'])
  const head = await viewed.ask('/page/events', { method: 'HEAD' })
  expect([head.status, head.headers['content-type']]).toEqual([200, 'text/event-stream'])
  // RFC 9110 §8.6: a HEAD has the length of the GET or none.
  expect(head.headers['content-length']).toBeUndefined()
  for (const stream of streams) stream.close()
  await expect.poll(() => overview.listeners).toBe(0)
  const stream = await viewed.stream()
  await stream.next('start')
})

it('H154 a new stream of a view replaces the one before, even when all are taken, and no other', async () => {
  const viewed = await startAdmin({ password: true })
  const [mine, other] = [await viewed.signIn(), await viewed.signIn()]
  const open = (Cookie: string, view: string) =>
    viewed.stream({ path: `/page/events?view=${view}`, headers: { Cookie } })
  const streams = await Promise.all(Array.from({ length: 14 }, (_, i) => open(mine, `view-${i}`)))
  const [first, theirs] = [await open(mine, 'same'), await open(other, 'same')]
  const next = await open(mine, 'same')
  expect([first, theirs, next].map(({ response }) => response.statusCode)).toEqual([200, 200, 200])
  await first.ended
  expect((await viewed.ask('/page/events?view=new', { headers: { Cookie: mine } })).status).toBe(503)
  await viewed.overview.tick()
  for (const stream of [...streams, theirs, next]) await stream.next('point')
})

it('H154 a viewer who reads nothing is dropped, and the others are not', async () => {
  const viewed = await startAdmin()
  const { overview } = viewed
  const deaf = await rawConnection(viewed.url)
  deaf.socket.pause()
  deaf.write('GET /page/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await expect.poll(() => overview.listeners).toBe(1)
  const stream = await viewed.stream()
  await stream.next('start')
  expect(await connectionsOf(viewed.admin.server)).toBe(2)
  // More than the kernel and the stream keep for a reader.
  for (let i = 0; i < 200 && (await connectionsOf(viewed.admin.server)) > 1; i += 1) {
    const details = `${i}`.repeat(100_000)
    overview.entries = [{ id: i + 1, time: i, level: 'info', text: 'x', details, times: 1 }]
    await overview.tick()
    await stream.next('timeline')
  }
  expect(await connectionsOf(viewed.admin.server)).toBe(1)
  await overview.tick()
  await stream.next('point')
})

it('H154 no timeout ends a stream, and a stop ends it at once', async () => {
  const clock = stillClock()
  const viewed = await startAdmin({ clock })
  const stream = await viewed.stream()
  await stream.next('start')
  await clock.advance(3_600_000)
  await viewed.overview.tick()
  await stream.next('point')
  viewed.admin.endStreams()
  await stream.ended
  expect((await viewed.ask('/page/events')).status).toBe(503)
  expect((await viewed.ask('/metrics')).status).toBe(200)
})

function connectionsOf(server: { getConnections(done: (error: Error | null, count: number) => void): void }) {
  return new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  )
}
