import { expect, it } from 'vitest'
import type { SharedStore } from '../../src/fleet/shared-store.ts'
import { digestToken } from '../../src/tokens/mint.ts'
import { open } from '../store/opened.ts'
import { startRelay } from '../store/relay.ts'
import { stillClock } from '../support/clock.ts'
import { startPair, startRedis, until } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { openSharedTokens } from '../tokens/shared-sidecar.ts'
import { HOUR, POLICY, present } from '../tokens/support.ts'

/** So long that no replica confirms too late, however busy the machine is (ms). */
const TIMEOUT = 60_000

/** A sidecar at a primary whose address can move to its replica, which has a replica of its own. */
async function startBed() {
  needs('redis-server')
  const { primary, replica } = await startPair()
  const last = await startRedis({ settings: [`replicaof 127.0.0.1 ${replica.port}`] })
  await until(async () => (await last.command('INFO', 'replication')).includes('master_link_status:up'))
  const address = await startRelay(primary.port)
  const settings = { replicas: 1, timeout: TIMEOUT }
  const { store, connectAgain } = await open(`valkey://127.0.0.1:${address.port}`, settings)
  const bed = {
    ...{ primary, replica },
    /** Runs before the second question of the next refresh. */
    between: async (): Promise<void> => {},
    async failOver(): Promise<void> {
      await primary.kill()
      await until(async () => !store.up)
      replica.thaw()
      await replica.command('REPLICAOF', 'NO', 'ONE')
      address.lead(replica.port)
      await connectAgain()
    },
  }
  let questions = 0
  const stepped: SharedStore = {
    ...store,
    async runDurably(script, ...question) {
      if (script.name === 'refresh' && ++questions === 2) await bed.between()
      return store.runDurably(script, ...question)
    },
  }
  const { tokens, issue } = await openSharedTokens({
    ...{ store, asked: stepped, clock: stillClock() },
    policy: { ...POLICY, rotateRefresh: true, refreshGrace: HOUR, offlineGrace: HOUR },
    listener: { issued() {}, revoked() {}, evicted() {} },
  })
  async function refresh(token: string) {
    const issued = present(await tokens.refresh(token))
    return issued === 'unavailable' ? expect.unreachable(issued) : issued
  }
  return Object.assign(bed, { tokens, issue, refresh })
}

it('C6 H145 a refresh goes on at the replica if the primary ends between its two questions, and a retry gets the same pair', async () => {
  const bed = await startBed()
  const { grant, refreshToken } = await bed.issue()
  bed.between = bed.failOver
  const next = await bed.refresh(refreshToken)
  expect(await bed.refresh(refreshToken)).toEqual(next)
  expect((await bed.refresh(next.refreshToken)).grant).toBe(grant)
  expect(await bed.tokens.describe([grant])).toMatchObject([{ refreshTokens: 1 }])
})

it('C6 H145 a refresh that only the dead primary has made gives no tokens, and the refresh token is good for one pair', async () => {
  const bed = await startBed()
  const { grant, accessToken, refreshToken } = await bed.issue()
  bed.between = async () => bed.replica.freeze()
  const lost = bed.tokens.refresh(refreshToken)
  const spent = ['ZSCORE', `{postern}:g:${grant}`, `s${digestToken(refreshToken)}`]
  await until(async () => (await bed.primary.command(...spent)) !== '')
  await bed.failOver()
  expect(await lost).toBe('unavailable')
  const next = await bed.refresh(refreshToken)
  expect(await bed.refresh(refreshToken)).toEqual(next)
  expect(await bed.tokens.describe([grant])).toMatchObject([{ accessTokens: 2, refreshTokens: 1 }])
  for (const token of [accessToken, next.accessToken])
    expect(await bed.tokens.identify(token, '192.0.2.1')).toEqual({ kind: 'valid', grant })
})

it('C8 H145 a grant that is revoked while a refresh has one of its two questions behind it, and the primary ends then, is over', async () => {
  const bed = await startBed()
  const { grant, refreshToken } = await bed.issue()
  bed.between = async () => {
    expect(await bed.tokens.revoke({ grant }, 'test')).toBe(1)
    await bed.failOver()
  }
  expect(await bed.tokens.refresh(refreshToken)).toBeUndefined()
  expect(await bed.tokens.grants()).toEqual([])
})
