import { beforeEach, expect, it, vi } from 'vitest'
import { Backpressure } from '../../src/forward/backpressure.ts'
import { downloadPace, laggedIn, type Pace, uploadPace, watchPace } from '../../src/forward/pace.ts'
import type { BoundedQueue } from '../../src/system/bounded-queue.ts'
import { stillClock } from '../support/clock.ts'

const KiB = 1024
let waiting = 1
const queue = {
  get waiting() {
    return waiting
  },
} as BoundedQueue

beforeEach(() => {
  waiting = 1
})

const clock = stillClock()

/** When (ms) a transfer is found too slow that has moved `at(time)` bytes; undefined: not within ten seconds. */
async function judged(
  pace: Pace,
  at: (time: number) => number | undefined,
  waited = 0,
): Promise<number | undefined> {
  let time = 0
  let found: number | undefined
  const timer = watchPace(
    pace,
    waited,
    () => at(time),
    () => {
      found ??= time
    },
  )
  for (; time < 10_000 && found === undefined; ) {
    time += 1
    await clock.advance(1)
  }
  timer.cancel()
  return found
}

const pace = uploadPace(clock, KiB, 5_000, queue)

it.each([
  ['is silent', () => 0, 2_250],
  ['drips', (time: number) => Math.floor(time / 100), 2_250],
  ['sends 900 bytes a second', (time: number) => time * 0.9, 2_250],
  ['sends 1,100 bytes a second', (time: number) => time * 1.1, undefined],
  ['sends a megabyte, then nothing', (time: number) => (time < 1_000 ? time * KiB : KiB * KiB), 3_000],
  ['is never waited for', () => undefined, undefined],
  [
    'is silent in an eighth of each two seconds',
    (time: number) => (time % 2_000 < 250 ? 0 : undefined),
    undefined,
  ],
])('H99 an upload that %s is found too slow only after 2 s of its own time', async (_, at, expected) => {
  expect(await judged(pace, at)).toBe(expected)
})

it.each([5_000, 3_000, 1_000, 100])(
  'H99 a slow upload or download is judged within half of queue.timeout: %i ms',
  async (timeout) => {
    const drips = (time: number): number => time / 10_000
    expect(await judged(uploadPace(clock, KiB, timeout, queue), drips)).toBeLessThanOrEqual(timeout / 2 + 1)
    expect(await judged(downloadPace(clock, 60_000, timeout, queue), () => 0)).toBeLessThanOrEqual(
      timeout / 2 + 1,
    )
  },
)

it('H99 an upload that was slow before others waited is found so at the next look', async () => {
  waiting = 0
  const found = await judged(pace, (time) => {
    if (time > 7_000) waiting = 1
    return 0
  })
  expect(found).toBe(7_250)
})

it('H99 time in which a silent client waited in the queue counts', async () => {
  expect(await judged(pace, () => 0, 1_500)).toBe(750)
})

it.each([
  ['has sent too little', 1_900, 2_500, true],
  ['waited for less than the window', 1, 1_900, false],
  ['has sent enough', 2_600, 2_500, false],
  ['has filled what is read of it', 16 * KiB, 3_600_000, false],
  ['is whole', Number.POSITIVE_INFINITY, 5_000, false],
])('H99 an upload in the queue that %s', (_, arrived, waited, lagged) => {
  expect(laggedIn(waited, { arrived }, pace)).toBe(lagged)
  waiting = 0
  expect(laggedIn(waited, { arrived }, pace)).toBe(false)
})

it('C25 a client that reads nothing loses its place by idle_timeout though no other request waits', async () => {
  waiting = 0
  const found = await judged(downloadPace(clock, 6_000, 5_000, queue), () => 0)
  expect(found).toBeGreaterThanOrEqual(6_000)
  expect(found).toBeLessThan(6_600)
})

it('a client that reads its backlog after the end of its response resumes nothing: the connection may carry another', () => {
  let drained = () => {}
  const client = {
    cut: vi.fn(),
    onDrain: (listener: () => void) => {
      drained = listener
    },
  }
  const device = { pause: vi.fn(), resume: vi.fn() }
  const backpressure = new Backpressure(client, device, downloadPace(clock, 60_000, 5_000, queue))
  for (let pauses = 1; pauses < 3; pauses += 1) {
    backpressure.pause()
    expect(device.pause).toHaveBeenCalledTimes(pauses)
    if (pauses === 1) drained()
  }
  backpressure.end()
  drained()
  expect(device.resume).toHaveBeenCalledOnce()
  expect(clock.pending).toBe(0)
  expect(client.cut).not.toHaveBeenCalled()
})
