import { expect, it } from 'vitest'
import { createIdleMemory } from '../../src/device/idle-memory.ts'
import { stillClock } from '../support/clock.ts'

const TRIAL = 5_000

function remembering(...closes: readonly number[]) {
  const clock = stillClock()
  const memory = createIdleMemory(clock)
  for (const idle of closes) memory.closed(idle)
  return { clock, memory }
}

it('H48 half of the shortest time counts, for every request', () => {
  const { memory } = remembering(2000, 300, 900)
  for (const repeatable of [true, false]) {
    expect(memory.trusts(149, repeatable)).toBe(true)
    expect(memory.trusts(150, repeatable)).toBe(false)
  }
})

it('H48 a device that closes right behind its answers does not keep connections', () => {
  const { memory } = remembering(2)
  expect(memory.trusts(0, true)).toBe(false)
  expect(memory.trusts(0, false)).toBe(false)
})

it('H48 a short time is forgotten after eight longer ones', () => {
  const { memory } = remembering(1, ...Array(7).fill(1000))
  expect(memory.trusts(100, false)).toBe(false)
  memory.closed(1000)
  expect(memory.trusts(100, false)).toBe(true)
})

it('H48 a repeatable request tries again from time to time, and what it finds to hold is believed', () => {
  const { clock, memory } = remembering(1, 1)
  expect(memory.trusts(100, true)).toBe(false)
  for (let trial = 0; trial < 2; trial += 1) {
    clock.advance(TRIAL)
    expect(memory.trusts(100, false)).toBe(false)
    expect(memory.trusts(100, true)).toBe(true)
    expect(memory.trusts(100, true)).toBe(false)
    memory.carried(100)
  }
  expect(memory.trusts(100, false)).toBe(true)
})

it('H48 a trial within the time that is known proves nothing', () => {
  const { clock, memory } = remembering(300)
  clock.advance(TRIAL)
  expect(memory.trusts(200, true)).toBe(true)
  memory.carried(200)
  expect(memory.trusts(160, false)).toBe(false)
})
