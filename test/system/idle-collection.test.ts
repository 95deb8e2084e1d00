import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/system/clock.ts'
import { collectWhenIdle } from '../../src/system/idle-collection.ts'
import { closeLater } from '../support/cleanup.ts'

const MIB = 1024 * 1024

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A process with the heap and the work that the test sets. A collection leaves 10 MiB. */
function startProcess(): {
  readonly close: () => void
  readonly privateSize: ReturnType<typeof vi.fn<() => number>>
  work: number
  heap: number
  beside: number
  held: number
  flooded: boolean
  calm: boolean
  readonly setGrowth: ReturnType<typeof vi.fn>
  readonly collect: ReturnType<typeof vi.fn>
} {
  const state = {
    work: 0,
    heap: 30 * MIB,
    /** Private memory beside the heap. A collection frees it. */
    beside: 0,
    held: 0,
    privateSize: vi.fn(() => state.heap + state.beside),
    flooded: false,
    calm: true,
    setGrowth: vi.fn(),
    collect: vi.fn(() => {
      state.heap = 10 * MIB
      state.beside = 0
    }),
  }
  const collection = collectWhenIdle({
    clock: systemClock,
    collect: state.collect,
    workSince: () => ({ idle: 0, active: 0, utilization: state.work }),
    heapSize: () => state.heap,
    privateSize: state.privateSize,
    takeFloodEnd: () => state.flooded,
    held: () => state.held,
    mayGrow: () => state.calm,
    setGrowth: state.setGrowth,
  })
  closeLater(collection.close)
  return Object.assign(state, { close: collection.close })
}

it('an idle process collects the garbage of its start once', () => {
  const { collect } = startProcess()
  vi.advanceTimersByTime(999)
  expect(collect).not.toHaveBeenCalled()
  vi.advanceTimersByTime(60_000)
  expect(collect).toHaveBeenCalledOnce()
})

it('a process that works collects nothing, whatever it works at', () => {
  const state = startProcess()
  for (let second = 0; second < 60; second += 1) {
    state.work = 0.02
    state.heap += MIB
    vi.advanceTimersByTime(1_000)
  }
  expect(state.collect).not.toHaveBeenCalled()
})

it('a process collects again only when its heap has grown by 4 MiB', () => {
  const state = startProcess()
  vi.advanceTimersByTime(1_000)
  state.heap += 4 * MIB - 1
  vi.advanceTimersByTime(10_000)
  expect(state.collect).toHaveBeenCalledOnce()
  state.heap += 1
  vi.advanceTimersByTime(1_000)
  expect(state.collect).toHaveBeenCalledTimes(2)
})

it('H250 a process that works collects once a flood is over', () => {
  const state = startProcess()
  state.work = 0.5
  vi.advanceTimersByTime(2_000)
  expect(state.collect).not.toHaveBeenCalled()
  state.flooded = true
  vi.advanceTimersByTime(1_000)
  expect(state.collect).toHaveBeenCalledOnce()
})

it('H270 a process collects for memory beside its heap, such as that of TLS connections', () => {
  const state = startProcess()
  vi.advanceTimersByTime(1_000)
  const workASecond = (): void => {
    state.work = 0.5
    vi.advanceTimersByTime(1_000)
    state.work = 0
    vi.advanceTimersByTime(10_000)
  }
  state.beside = 16 * MIB - 1
  workASecond()
  expect(state.collect).toHaveBeenCalledOnce()
  state.beside += 1
  workASecond()
  expect(state.collect).toHaveBeenCalledTimes(2)
})

it('a busy process collects less often, unless clients hold much', () => {
  const state = startProcess()
  const growths = (): unknown[] => state.setGrowth.mock.calls.flat()
  state.work = 0.3
  vi.advanceTimersByTime(10_000)
  expect(growths()).toEqual([])
  state.work = 0.31
  vi.advanceTimersByTime(10_000)
  expect(growths()).toEqual([300])
  state.calm = false
  vi.advanceTimersByTime(10_000)
  expect(growths()).toEqual([300, 0])
  state.calm = true
  vi.advanceTimersByTime(10_000)
  state.work = 0
  vi.advanceTimersByTime(10_000)
  expect(growths()).toEqual([300, 0, 300, 0])
})

it('V8 knows each flag that is set while it runs', () => {
  const source = new URL('../../src/system/idle-collection.ts', import.meta.url)
  const flags = readFileSync(source, 'utf8').match(/(?<=['`])--[a-z-]+/g) ?? []
  expect(flags).toContain('--heap-growing-percent')
  const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' })
  for (const flag of flags) expect(known).toContain(`  ${flag} (`)
})

it('H270 a process collects when clients have given back much, because it does not grow by that', () => {
  const state = startProcess()
  state.held = 32 * MIB
  vi.advanceTimersByTime(1_000)
  state.held = 16 * MIB + 1
  vi.advanceTimersByTime(10_000)
  expect(state.collect).toHaveBeenCalledOnce()
  state.held = 0
  vi.advanceTimersByTime(10_000)
  expect(state.collect).toHaveBeenCalledTimes(2)
})

it('a process that stops while it is busy leaves the choice to V8', () => {
  const state = startProcess()
  state.work = 0.5
  vi.advanceTimersByTime(1_000)
  state.close()
  expect(state.setGrowth.mock.calls.flat()).toEqual([300, 0])
})

it('a process that stays idle does not look at its private memory', () => {
  const { privateSize } = startProcess()
  vi.advanceTimersByTime(2_000)
  privateSize.mockClear()
  vi.advanceTimersByTime(60_000)
  expect(privateSize).not.toHaveBeenCalled()
})
