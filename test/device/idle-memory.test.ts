import { expect, it } from 'vitest'
import { createIdleMemory } from '../../src/device/kept-connections.ts'
import { stillClock } from '../support/clock.ts'

const TRIAL = 5_000

function createMemory(...closes: readonly number[]) {
  const clock = stillClock()
  const memory = createIdleMemory(clock)
  for (const idle of closes) memory.closed(idle)
  return { clock, memory }
}

it('H48 connections are reused for up to half of the shortest idle time at which the device closed one', () => {
  const { memory } = createMemory(2000, 300, 900)
  for (const repeatable of [true, false]) {
    expect(memory.trusts(149, repeatable)).toBe(true)
    expect(memory.trusts(150, repeatable)).toBe(false)
  }
})

it('H48 connections to a device that closes right after its responses are not reused', () => {
  const { memory } = createMemory(2)
  expect(memory.trusts(0, true)).toBe(false)
  expect(memory.trusts(0, false)).toBe(false)
})

it('H48 a short idle time is forgotten after eight longer ones', () => {
  const { memory } = createMemory(1, ...Array(7).fill(1000))
  expect(memory.trusts(100, false)).toBe(false)
  memory.closed(1000)
  expect(memory.trusts(100, false)).toBe(true)
})

it('H48 a repeatable request tries a longer idle time periodically, and a success is remembered', () => {
  const { clock, memory } = createMemory(1, 1)
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

it('H48 a trial within the known idle time changes nothing', () => {
  const { clock, memory } = createMemory(300)
  clock.advance(TRIAL)
  expect(memory.trusts(200, true)).toBe(true)
  memory.carried(200)
  expect(memory.trusts(160, false)).toBe(false)
})
