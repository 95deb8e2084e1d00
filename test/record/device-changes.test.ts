import { expect, it } from 'vitest'
import { createDeviceChanges } from '../../src/record/device-changes.ts'
import { createLogOn } from '../../src/record/log.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'

it('H223 a device that goes away and comes back is a line each, also without an access log, and in the timeline', async () => {
  const device = await startDevice()
  const config = { log: { access: false }, upstream: { health: { path: '/' } } }
  const sidecar = await startSidecar({ device, config })
  const token = await sidecar.token()
  expect((await sidecar.request({ token })).status).toBe(200)
  await device.stop()
  expect((await passUntil(sidecar.clock, sidecar.request({ token }))).status).toBe(500)
  const logged = () =>
    sidecar.logLines().flatMap((line) => {
      const { level, msg, failure, url, remedy } = JSON.parse(line)
      return /^the device is/.test(msg) ? [[level, msg, failure, url, remedy]] : []
    })
  const down = [
    50,
    'the device is down',
    expect.stringMatching(/^connection_/),
    device.url,
    expect.stringContaining('postern check'),
  ]
  expect(logged()).toEqual([down])
  await startDevice(undefined, { port: Number(new URL(device.url).port) })
  const up = [30, 'the device is up again', undefined, undefined, undefined]
  await passUntil(sidecar.clock, expect.poll(logged).toEqual([down, up]))
  const shown = sidecar.overview.timeline(0).map(({ text, details }) => [text, details])
  expect(shown).toContainEqual(['the device is down', expect.stringMatching(/\bfailure: connection_/)])
  expect(shown).toContainEqual(['the device is up again', expect.stringMatching(/^seconds: \d+$/)])
})

it('H223 a device that comes and goes with every request has ten lines a minute, and one that sums up the rest', async () => {
  const lines: Record<string, unknown>[] = []
  const clock = stillClock()
  const log = createLogOn('info', { write: (line) => void lines.push(JSON.parse(line)) })
  const { changed, close } = createDeviceChanges(log, 'http://192.0.2.1', clock)
  changed(true, null)
  expect(lines).toEqual([])
  for (let i = 0; i < 8; i += 1) {
    changed(false, 'connection_refused')
    await clock.advance(2_400)
    changed(true, 'connection_refused')
  }
  expect(lines.map(({ msg }) => msg)).toEqual(
    Array.from({ length: 5 }, () => ['the device is down', 'the device is up again']).flat(),
  )
  expect(lines[1]).toMatchObject({ seconds: 2 })
  await clock.advance(60_000)
  expect(lines.at(-1)).toMatchObject({ changes: 6, now: 'up', msg: 'the device goes away and comes back' })
  changed(false, 'dns_error')
  expect(lines.at(-1)).toMatchObject({ failure: 'dns_error', msg: 'the device is down' })
  for (let i = 0; i < 5; i += 1) for (const up of [true, false]) changed(up, 'dns_error')
  close()
  expect(lines.at(-1)).toMatchObject({ changes: 1, now: 'down', failure: 'dns_error' })
  expect(lines).toHaveLength(22)
})
