import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { nextTurn } from '../../src/system/clock.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { openJournaledStore } from './journaled-store.ts'

const SCHEDULE = '/proc/thread-self/schedstat'

/** The time (ms) without what this thread has waited for the processor, where the system reports that. */
function ownTime(): number {
  const [, waited = '0'] = existsSync(SCHEDULE) ? readFileSync(SCHEDULE, 'latin1').split(' ') : []
  return performance.now() - Number(waited) / 1e6
}

test('200 logins delay the event loop by less than 5 ms at the 99th percentile', async () => {
  const { store } = openJournaledStore(join(temporaryDirectory(), 'state'))
  let quiet = Number.POSITIVE_INFINITY
  // A busy machine only adds delays, so the best of some attempts is that of the code.
  for (let attempt = 0; attempt < 10 && quiet >= 5; attempt++) {
    const turns: number[] = []
    for (let i = 0, last = ownTime(); i < 200; i++) {
      store.issue('a', 'password')
      if (i % 50 === 0) store.sweep()
      await nextTurn()
      const now = ownTime()
      turns.push(now - last)
      last = now
    }
    quiet = Math.min(quiet, turns.sort((a, b) => a - b)[197] ?? quiet)
  }
  expect(quiet).toBeLessThan(5)
})
