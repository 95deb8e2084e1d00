import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { nextTurn, rest, systemClock } from '../../src/system/clock.ts'
import { closeLater } from '../support/cleanup.ts'
import { standStill } from '../support/processes.ts'
import { socketPair } from '../support/raw.ts'

it.each(['after', 'every'] as const)(
  'H357 what has arrived while the process stood still is read before a due timer of `%s` is judged',
  async (kind) => {
    const { from, to } = await socketPair()
    to.resume()
    const events: string[] = []
    const late = Promise.withResolvers<void>()
    to.once('data', () => events.push('read'))
    const timer = systemClock[kind](20, () => {
      events.push('late')
      late.resolve()
    })
    closeLater(() => timer.cancel())
    from.write('in time')
    standStill(50)
    await late.promise
    expect(events.slice(0, 2)).toEqual(['read', 'late'])
  },
)

it('a timer that is cancelled before it is judged calls nothing, also in the turn in which it is due', async () => {
  const { from, to } = await socketPair()
  to.resume()
  const timer = systemClock.after(20, () => expect.fail('it was cancelled'))
  const read = new Promise<void>((resolve) => {
    to.once('data', () => {
      timer.cancel()
      resolve()
    })
  })
  from.write('in time')
  standStill(50)
  await read
  await nextTurn()
})

it('a pause ends with its time or its signal, and at once with one that has aborted', async () => {
  for (const pause of [
    systemClock.pause,
    (time: number, signal?: AbortSignal) => rest(systemClock, time, signal),
  ]) {
    await pause(1)
    const ending = new AbortController()
    await pause(1, ending.signal)
    expect(getEventListeners(ending.signal, 'abort')).toEqual([])
    const paused = pause(3_600_000, ending.signal)
    ending.abort()
    await paused
    await pause(3_600_000, ending.signal)
  }
})
