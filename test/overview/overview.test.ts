import { expect, it } from 'vitest'
import { createReloader } from '../../src/commands/reloader.ts'
import { createGrantRows, limitCondition } from '../../src/overview/overview.ts'
import { createTimeline } from '../../src/overview/timeline.ts'
import { createLogOn } from '../../src/record/log.ts'
import type { GrantSummary } from '../../src/tokens/grant-table.ts'
import { passUntil, stillClock } from '../support/clock.ts'

const GRANT: GrantSummary = {
  id: 'a',
  client: '192.0.2.1',
  issuedAt: 1,
  expiresAt: 9,
  usedAt: null,
  accessTokens: 1,
  refreshTokens: 1,
}

it('H150 a shared store is asked for the grants at most once in 10 s, whatever it answers', async () => {
  const clock = stillClock()
  const answers = ['unavailable', { total: 7, grants: [GRANT, { ...GRANT, id: 'b', usedAt: 5 }] }] as const
  const asked: number[] = []
  const grants = createGrantRows(
    {
      async recentGrants(most) {
        asked.push(most)
        return answers[asked.length - 1] ?? 'unavailable'
      },
    },
    clock,
  )
  expect(await Promise.all([grants(), grants()])).toEqual(['unavailable', 'unavailable'])
  await clock.advance(9_999)
  expect(await grants()).toBe('unavailable')
  expect(asked).toEqual([1_000])
  await clock.advance(1)
  const { accessTokens: _, refreshTokens: __, ...row } = GRANT
  expect(await grants()).toEqual({ total: 7, rows: [{ ...row, id: 'b', usedAt: 5 }, row] })
  expect(asked).toEqual([1_000, 1_000])
})

it('H150 of the used-up windows the 100 most refused are shown, the worst first, and all are counted', () => {
  const windows = Array.from({ length: 250 }, (_, i) => ({ key: `k${i}`, closesAt: 500.5, refused: i }))
  const shown = limitCondition({ requests: 1, window: 1000, per: 'client', names: [] }, windows, 1_000)
  expect(shown).toMatchObject({ requests: 1, window: 1000, per: 'client', usedUpCount: 250 })
  expect(shown.usedUp).toHaveLength(100)
  expect(shown.usedUp[7]).toEqual({ key: 'k242', until: 1_501, refused: 242 })
})

it('H150 a reload is in the timeline', async () => {
  const log = createLogOn('silent', { write: () => {} })
  const clock = stillClock()
  const timeline = createTimeline(log, clock)
  const results = [
    async () => ({ live: ['limits.api.requests'], restart: [] }),
    async () => Promise.reject(new Error('no')),
  ]
  const sidecar: Parameters<typeof createReloader>[0] = {
    reload(load) {
      load()
      return results.shift()?.() ?? Promise.reject()
    },
  }
  const load = () => ({}) as never // this sidecar does not look at it
  const reloader = createReloader(sidecar, { configFile: undefined, seen: new Map(), load }, log, clock)
  for (const count of [1, 2]) {
    reloader.reload('signal')
    await passUntil(clock, expect.poll(() => timeline.entries(0).length).toBe(count))
  }
  expect(timeline.entries(0)).toMatchObject([
    { level: 'info', text: 'configuration reloaded', details: 'changed: limits.api.requests, by: signal' },
    { level: 'error', details: expect.stringMatching(/^problems: no, by: signal, remedy: correct it/) },
  ])
})
