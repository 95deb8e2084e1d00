import { expect, it } from 'vitest'
import { abortAfter, nextTurn, waitAtMost } from '../../src/system/clock.ts'
import { MovingDeadline } from '../../src/system/moving-deadline.ts'
import { stillClock } from '../support/clock.ts'

it('`waitAtMost` ends with the work or with its time, and passes on the error of the work', async () => {
  const clock = stillClock()
  await waitAtMost(clock, 1_000, Promise.resolve())
  await expect(waitAtMost(clock, 1_000, Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  let over = false
  const waiting = waitAtMost(clock, 1_000, new Promise(() => {})).then(() => {
    over = true
  })
  await clock.advance(999)
  expect(over).toBe(false)
  await clock.advance(1)
  await waiting
})

it('`abortAfter` aborts at its time, and not once its scope has ended', async () => {
  const clock = stillClock()
  const [one, other] = [abortAfter(clock, 1_000), abortAfter(clock, 1_000)]
  await clock.advance(999)
  expect(one.signal.aborted).toBe(false)
  other[Symbol.dispose]()
  await clock.advance(1)
  expect([one.signal.aborted, other.signal.aborted]).toEqual([true, false])
})

it('a deadline that is moved is late at the last time that it was given, to the millisecond', async () => {
  const clock = stillClock()
  let late = 0
  const deadline = new MovingDeadline(clock, () => {
    late += 1
  })
  deadline.move(1_000)
  await clock.advance(999)
  deadline.move(1_000)
  await clock.advance(999)
  expect(late).toBe(0)
  await clock.advance(1)
  expect(late).toBe(1)
  // An earlier time takes the place of a later one, too.
  deadline.move(1_000)
  deadline.move(10)
  await clock.advance(10)
  expect(late).toBe(2)
  deadline.move(10)
  deadline.cancel()
  await clock.advance(1_000)
  expect([late, clock.pending]).toEqual([2, 0])
})

it('a still clock calls what is due in order, each at its own time, with a turn before each', async () => {
  const clock = stillClock()
  const start = clock.monotonic()
  const events: string[] = []
  const note = (name: string) => (): void => void events.push(`${name} ${clock.monotonic() - start}`)
  clock.after(30, note('after'))
  const timer = clock.every(20, note('every'))
  clock.after(20, () => void nextTurn().then(note('turn')))
  await clock.advance(50)
  expect(events).toEqual(['every 20', 'turn 20', 'after 30', 'every 40'])
  timer.cancel()
  await clock.advance(50)
  expect([events.length, clock.pending, clock.monotonic() - start]).toEqual([4, 0, 100])
})

it('a leap of a still clock calls what is due once, at its end', async () => {
  const clock = stillClock()
  const start = clock.monotonic()
  const events: number[] = []
  clock.every(20, () => events.push(clock.monotonic() - start))
  await clock.leap(1_000)
  await clock.advance(20)
  expect(events).toEqual([1_000, 1_020])
})
