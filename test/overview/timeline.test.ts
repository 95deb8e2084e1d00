import { expect, it } from 'vitest'
import type { TimelineEntry } from '../../src/overview/model.ts'
import { createTimeline, type Timeline } from '../../src/overview/timeline.ts'
import { type LogDestination, type Logger, openLogOn } from '../../src/record/log.ts'
import { stillClock } from '../support/clock.ts'

function start(level = 'info'): {
  readonly log: Logger
  readonly destination: LogDestination
  readonly lines: string[]
  readonly timeline: Timeline
  readonly shown: () => readonly Partial<TimelineEntry>[]
} {
  const lines: string[] = []
  const { log, destination } = openLogOn(level, { write: (line) => lines.push(line) })
  const timeline = createTimeline(log, stillClock())
  return {
    log,
    destination,
    lines,
    timeline,
    shown: () =>
      timeline.entries(0).map(({ text, details, level: of, times }) => ({ level: of, text, details, times })),
  }
}

const entry = (level: string, text: string, details = '', times = 1): object => ({
  level,
  text,
  details,
  times,
})

it('H150 the timeline has each line as short text, an error by its message alone', () => {
  const { log, lines, shown } = start()
  log.info({ changed: ['limits.api.requests', 'log.level'] }, 'configuration reloaded')
  log.child({ route: '/files/' }).warn('the device sends bytes')
  log.error({ err: new Error('it broke') }, 'internal error')
  log.fatal({ reason: undefined, pauseMs: 5, nested: { a: 1 } }, 'the end')
  log.debug('not shown')
  const endless: Record<string, unknown> = {}
  endless.self = endless
  log.warn({ endless, big: 2n }, 'odd')
  expect(shown()).toEqual([
    entry('info', 'configuration reloaded', 'changed: limits.api.requests, log.level'),
    entry('warn', 'the device sends bytes', 'route: /files/'),
    entry('error', 'internal error', 'it broke'),
    entry('error', 'the end', 'pauseMs: 5, nested: {"a":1}'),
    entry('warn', 'odd', 'big: 2'),
  ])
  expect(lines).toHaveLength(5)
  expect(lines[1]).toContain('"route":"/files/"')
})

it('H150 `log.level` keeps lines out of the log, not out of the timeline, also when it changes', () => {
  const { log, lines, shown } = start('silent')
  const child = log.child({ route: '/a/' })
  log.info('one')
  log.level = 'error'
  log.warn('two')
  child.info('three')
  log.level = 'info'
  log.info('four')
  expect(shown().map(({ text }) => text)).toEqual(['one', 'two', 'three', 'four'])
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['four'])
})

it('H150 the timeline leaves out lines about requests, and the access log goes on', () => {
  const { log, destination, lines, shown } = start()
  destination.writeAscii('{"msg":"request"}\n')
  log.info({ refusal: 'rate-limited', count: 5 }, 'more refusals')
  expect(shown()).toEqual([])
  expect(lines).toHaveLength(2)
})

it('H150 the same line in a row is one entry, which keeps its id', () => {
  const { log, timeline, shown } = start()
  log.warn({ reason: 'a' }, 'again')
  log.warn({ reason: 'a' }, 'again')
  log.warn({ reason: 'b' }, 'again')
  log.warn({ reason: 'b' }, 'again')
  expect(shown()).toEqual([entry('warn', 'again', 'reason: a', 2), entry('warn', 'again', 'reason: b', 2)])
  expect(timeline.entries(0).map(({ id }) => id)).toEqual([1, 2])
  expect(timeline.entries(1)).toMatchObject([{ id: 2, times: 2 }])
})

it('H150 an entry is short and has no control characters, and the last 100 are kept', () => {
  const { log, timeline } = start()
  for (let i = 0; i < 110; i += 1) log.info({ file: `\u001b[2J\u202e${i}\n${'x'.repeat(1000)}` }, `line ${i}`)
  const entries = timeline.entries(0)
  expect(entries).toHaveLength(100)
  expect(entries[0]?.text).toBe('line 10')
  expect(entries[0]?.details).toMatch(/^file: {2}\[2J 10 x+\.\.\.$/)
  expect(entries[0]?.details).toHaveLength(256)
})

it('H150 a closed timeline hears nothing, and the log goes on', () => {
  const { log, lines, timeline, shown } = start()
  timeline[Symbol.dispose]()
  log.info('stopped')
  expect(shown()).toEqual([])
  expect(lines).toHaveLength(1)
})
