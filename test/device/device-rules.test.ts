import { expect, it } from 'vitest'
import { createDeviceRules } from '../../src/device/device-rules.ts'

it('auto turns tolerant for good, and says so once', () => {
  let told = 0
  const rules = createDeviceRules('auto', () => {
    told += 1
  })
  expect(rules.current).toBe('auto')
  // Several responses may be under way when the device is found out.
  for (let i = 0; i < 3; i += 1) {
    rules.foundSloppy()
    expect([rules.current, told]).toEqual(['tolerant', 1])
  }
})

it.each(['strict', 'tolerant'] as const)('%s stays so', (mode) => {
  const rules = createDeviceRules(mode, () => expect.fail('nothing was to be found out'))
  rules.foundSloppy()
  expect(rules.current).toBe(mode)
})
