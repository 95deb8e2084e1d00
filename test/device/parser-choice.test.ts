import { expect, it } from 'vitest'
import { createParserChoice } from '../../src/device/parser-choice.ts'

it('auto turns tolerant for good, and says so once', () => {
  let told = 0
  const choice = createParserChoice('auto', () => {
    told += 1
  })
  expect(choice.rules).toBe('auto')
  // Several responses may be under way when the device is found out.
  for (let i = 0; i < 3; i += 1) {
    choice.foundSloppy()
    expect([choice.rules, told]).toEqual(['tolerant', 1])
  }
})

it.each(['strict', 'tolerant'] as const)('%s stays so', (mode) => {
  const choice = createParserChoice(mode, () => expect.fail('nothing was to be found out'))
  choice.foundSloppy()
  expect(choice.rules).toBe(mode)
})
