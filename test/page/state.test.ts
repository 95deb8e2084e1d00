import { expect, it } from 'vitest'
import type { Alarm, PageEvents, Point } from '../../src/overview/model.ts'
import { areasAndLines, axisOf, plots, rowsBetween } from '../../src/page/chart-data.js'
import { selectGrants } from '../../src/page/grants.js'
import { emptyState, take } from '../../src/page/state.js'
import { statusLine } from '../../src/page/status.js'
import { alarmOf, calm, secondOf } from './calm.ts'

const NOW = Date.UTC(2026, 10, 22, 12)
const point = (time: number, more: Partial<Point> = {}): Point => secondOf({ time, requests: 5, ...more })
const start = (run: string, points: readonly Point[]): PageEvents['start'] => ({
  about: { run, version: '1', node: '26', machine: 'm', startedAt: NOW },
  now: NOW,
  mayRevoke: true,
  signedIn: false,
  points,
  timeline: [{ id: 1, time: NOW, level: 'info', text: 'listening', details: '', times: 1 }],
  condition: calm(NOW),
})

it('H156 the points of two connections join without doubles, and only 15 minutes stay', () => {
  const state = emptyState()
  take(state, 'start', start('a', [point(NOW - 1_000_000), point(NOW - 2_000), point(NOW - 1_000)]))
  take(state, 'start', start('a', [point(NOW - 1_000), point(NOW)]))
  take(state, 'point', point(NOW))
  expect(state.points.map(({ time }) => time - NOW)).toEqual([-2_000, -1_000, 0])
})

it('H156 seconds go on when the clock of the sidecar is set back, with or without a reconnection', () => {
  const state = emptyState()
  const times = () => state.points.map(({ time }) => (time - NOW) / 1_000)
  take(state, 'start', start('a', [point(NOW - 1_000), point(NOW)]))
  take(state, 'point', point(NOW - 60_000))
  expect(times()).toEqual([-62, -61, -60])
  const before = start('a', [point(NOW - 92_000), point(NOW - 91_000), point(NOW - 90_000)])
  take(state, 'start', { ...before, now: NOW - 90_000 })
  expect(times()).toEqual([-92, -91, -90])
})

it('H157 a line of the timeline that comes again stays one line', () => {
  const state = emptyState()
  const line = { id: 2, time: NOW, level: 'warn', text: 'again', details: '', times: 1 } as const
  take(state, 'start', start('a', []))
  take(state, 'timeline', [line])
  take(state, 'timeline', [{ ...line, times: 3 }])
  expect(state.timeline.map(({ text, times }) => `${text} ${times}`)).toEqual(['listening 1', 'again 3'])
})

it('H157 a restart is a line of the timeline, between the lines of both runs', () => {
  const state = emptyState()
  take(state, 'start', start('a', []))
  take(state, 'timeline', [{ id: 1, time: NOW, level: 'info', text: 'listening', details: '', times: 2 }])
  take(state, 'start', start('b', []))
  expect(state.timeline.map(({ text, times }) => `${text} ${times}`)).toEqual([
    'listening 2',
    'the sidecar was restarted 1',
    'listening 1',
  ])
})

it('H156 a missing second is a gap in every line, and refusals are stacked on what passed', () => {
  const [traffic] = plots(calm(NOW))
  const rows = rowsBetween(
    [point(1_000), point(2_000, { refusals: { rate_limited: 2, malformed: 1 } }), point(6_000), point(7_950)],
    0,
    9_000,
  )
  expect(rows.map(({ time, point }) => [time, point === null])).toEqual([
    [1_000, false],
    [2_000, false],
    [3_000, true],
    [6_000, false],
    [7_950, false], // a late one: the sidecar skips only what took two seconds
  ])
  const [passed, limited, , , , other] = areasAndLines(traffic ?? expect.fail(), rows)
  expect([passed, limited, other]).toEqual([
    [5, 2, null, 5, 5],
    [5, 4, null, null, null],
    [5, 5, null, null, null],
  ])
})

it('H157 the state line tells a lost stream from a stopped sidecar, without chattering', () => {
  const heard = NOW - 12_000
  const line = (phase: Parameters<typeof statusLine>[0]['phase']) =>
    statusLine({ phase, reason: 'why', since: heard, heard }, calm(NOW), NOW)
  expect(line('live').text).toBe('Ready')
  expect(line('lost')).toEqual({
    tone: 'critical',
    title: 'Connection lost',
    text: 'Connection lost, last data 12 s ago',
    said: 'Connection lost',
  })
  expect(line('unreachable').text).toMatch(/^The sidecar is stopped or unreachable since \d\d:\d\d:48$/)
  expect(line('viewers').text).toMatch(/^Too many viewers/)
  expect(line('stopping').text).toBe('The sidecar is stopping')
  expect(line('refused').text).toBe('The sidecar refuses this page: why')
  const off = { ...calm(NOW), ready: false, reasons: ['the device does not respond'] }
  expect(statusLine({ phase: 'live', reason: '', since: 0, heard }, off, NOW)).toMatchObject({
    title: 'Not ready',
    text: 'Not ready: the device does not respond',
  })
})

it('H158 the state line is green only without an alarm, and counts those that are more than a note', () => {
  const line = (...levels: readonly Alarm['level'][]) => {
    const alarms = levels.map((level) => alarmOf(level))
    const link = { phase: 'live', reason: '', since: 0, heard: NOW } as const
    const { tone, title, said } = statusLine(link, { ...calm(NOW), alarms }, NOW)
    return [tone, title, said]
  }
  expect(line()).toEqual(['good', 'Ready', 'Ready'])
  expect(line('note')).toEqual(['good', 'Ready', 'Ready'])
  expect(line('warning', 'note')).toEqual(['warning', 'Ready, 1 alarm', 'Ready'])
  expect(line('critical', 'warning')).toEqual(['critical', 'Ready, 2 alarms', 'Ready'])
})

it('H156 an axis has a few round ticks at equal distances, up to the highest value or above', () => {
  const ticks = (log: boolean, ...values: (number | null)[]) =>
    axisOf({ log }, [values]).ticks.map(({ text }) => text)
  expect(ticks(false, null, 0)).toEqual(['0', '1'])
  expect(ticks(false, 4)).toEqual(['0', '1', '2', '3', '4'])
  expect(ticks(false, 41)).toEqual(['0', '20', '40', '60'])
  expect(ticks(true, 3, 900)).toEqual(['1 ms', '10 ms', '100 ms', '1 s'])
  expect(ticks(true)).toEqual(['1 ms', '10 ms'])
  const { heightOf } = axisOf({ log: true }, [[3, 900]])
  expect([0, 1, 10, 1_000].map((value) => heightOf(value).toFixed(2))).toEqual([
    '0.00',
    '0.00',
    '0.33',
    '1.00',
  ])
})

it('H159 logins are found by part of an address or id, and sorted by address as numbers', () => {
  const grant = (id: string, client: string, usedAt: number | null) => ({
    id,
    client,
    usedAt,
    issuedAt: Number(`0x${id}`),
    expiresAt: 0,
  })
  const all = [grant('a1', '192.0.2.10', 5), grant('b2', '192.0.2.9', null), grant('c3', '2001:db8::1', 9)]
  const ids = (...[filter, field, direction]: [string, 'client' | 'age' | 'used' | 'left', 1 | -1]) =>
    selectGrants(all, filter, field, direction).map(({ id }) => id)
  expect(ids('', 'client', 1)).toEqual(['b2', 'a1', 'c3'])
  expect(ids('', 'used', 1)).toEqual(['c3', 'a1', 'b2'])
  expect(ids('', 'age', 1)).toEqual(['c3', 'b2', 'a1'])
  expect(ids(' 192.0', 'client', -1)).toEqual(['a1', 'b2'])
  expect(ids('B2', 'client', 1)).toEqual(['b2'])
})
