import { expect, it } from 'vitest'
import { createDeviceRules } from '../../src/device/target.ts'

it('auto becomes tolerant permanently and reports it once', () => {
  let reports = 0
  const rules = createDeviceRules('auto', () => {
    reports += 1
  })
  expect(rules.current).toBe('auto')
  // Several responses may be in flight when the first sloppy one is found.
  for (let i = 0; i < 3; i += 1) {
    rules.foundSloppy()
    expect([rules.current, reports]).toEqual(['tolerant', 1])
  }
})

it.each(['strict', 'tolerant'] as const)('%s never changes', (mode) => {
  const rules = createDeviceRules(mode, () => expect.fail('reported a sloppy device'))
  rules.foundSloppy()
  expect(rules.current).toBe(mode)
})
