import { expect, it } from 'vitest'
import { createAlarmLog } from '../../src/overview/alarm-log.ts'
import type { Alarm, AlarmName } from '../../src/overview/model.ts'
import { createLogOn } from '../../src/record/log.ts'
import { alarmOf } from '../page/calm.ts'
import { stillClock } from '../support/clock.ts'

const MINUTE = 60_000

function start() {
  const lines: Record<string, unknown>[] = []
  const clock = stillClock()
  const self = { alarms: [] as readonly Alarm[], asked: 0 }
  const look = createAlarmLog({
    clock,
    log: createLogOn('info', { write: (line) => void lines.push(JSON.parse(line)) }),
    alarms() {
      self.asked += 1
      return self.alarms
    },
  })
  clock.every(1_000, look)
  const raise = (name: AlarmName): void => {
    self.alarms = [alarmOf('warning', { name, what: 'The device is slow: 6.00 s' })]
  }
  return { lines, clock, self, raise }
}

it('H373 a slow device is a line when its alarm begins, and one more only when it was away for ten minutes', async () => {
  const { lines, clock, self, raise } = start()
  raise('PosternDeviceSlow')
  await clock.advance(30 * MINUTE)
  self.alarms = []
  await clock.advance(9 * MINUTE)
  raise('PosternDeviceSlow')
  await clock.advance(MINUTE)
  expect(lines).toMatchObject([
    {
      level: 40,
      msg: 'the device is slow',
      what: 'The device is slow: 6.00 s',
      remedy: expect.stringContaining('upstream.max_in_flight'),
    },
  ])
  self.alarms = []
  await clock.advance(10 * MINUTE)
  raise('PosternDeviceSlow')
  await clock.advance(MINUTE)
  expect(lines).toHaveLength(2)
})

it('H373 an alarm whose event has a line of its own is no second line', async () => {
  const { lines, clock, raise } = start()
  raise('PosternDeviceDown')
  await clock.advance(MINUTE)
  expect(lines).toEqual([])
})

it('H154 the alarms are asked for every ten seconds', async () => {
  const { clock, self } = start()
  await clock.advance(MINUTE)
  expect(self.asked).toBe(6)
})
