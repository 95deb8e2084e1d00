import { once } from 'node:events'
import { expect, it } from 'vitest'
import { Activity } from '../../src/system/activity.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { socketPair } from '../support/raw.ts'

it('the last activity is what the owner tells, and a byte that it does not tell counts as new', async () => {
  const { from, to } = await socketPair()
  const activity = new Activity(to, 10)
  expect(activity.look(20)).toBe(10)
  to.resume()
  from.write('x')
  await once(to, 'data')
  expect(activity.look(30)).toBe(30)
  from.write('x')
  await once(to, 'data')
  activity.told = 35
  expect([activity.look(40), activity.look(50)]).toEqual([35, 35])
  to.write('x')
  await once(from.resume(), 'data')
  expect([activity.look(60), activity.look(70)]).toEqual([60, 60])
})

it('bytes that begin to wait count as activity, then only those that are taken, whatever is queued behind them', async () => {
  const { from, to } = await socketPair()
  const activity = new Activity(to, 10)
  from.pause()
  let written = Promise.resolve()
  // Until the buffers of the kernel are full.
  while (to.writableLength === 0) {
    written = new Promise((resolve) => to.write(Buffer.alloc(1 << 20), () => resolve()))
    await nextTurn()
  }
  expect([activity.look(20), activity.look(30)]).toEqual([20, 20])
  to.write('more')
  expect(activity.look(40)).toBe(20)
  to.write(Buffer.alloc(64 << 20))
  from.resume()
  await written.then(() => void from.pause())
  // What the owner tells is older than what the peer takes while more waits.
  activity.told = 45
  expect(to.writableLength).toBeGreaterThan(0)
  expect(activity.look(50)).toBe(50)
})
