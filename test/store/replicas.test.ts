import { beforeEach, describe, expect, it } from 'vitest'
import { startPair, startRedis, until } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { ADD, failureOf, KEY, open, READ, REVOKE } from './opened.ts'
import { startRelay } from './relay.ts'

beforeEach(() => needs('redis-server'))

describe('a script that replicas confirm', () => {
  it('H136 is answered when the replica has it', async () => {
    const { primary, replica } = await startPair()
    const { store, failures } = await open(`valkey://${primary.at}`, { replicas: 1 })
    const sums = await Promise.all(Array.from({ length: 20 }, () => store.runDurably(ADD, [KEY], [1])))
    expect(Math.max(...sums.map(Number))).toBe(20)
    const replicated = await replica.command('GET', KEY)
    // The server counts the time to confirm by its own clock. Where a busy machine keeps the replica from it, that is reported.
    for (const failure of failures)
      expect(failure).toMatchObject({ operation: 'replicate', failure: 'timeout' })
    if (failures.length === 0) expect(replicated).toBe('20')
  })

  it('H136 is answered without a replica, too, and reported; other scripts do not wait', async () => {
    const redis = await startRedis()
    const { store, failures, transitions } = await open(`valkey://${redis.at}`, { replicas: 1 })
    let confirmed = false
    const durable = Promise.all([1, 2, 3].map(() => store.runDurably(ADD, [KEY], [1]))).then((sums) => {
      confirmed = true
      return sums
    })
    expect(await store.run(READ, ['{postern}:other'], [])).toBe(null)
    expect(confirmed).toBe(false)
    expect(await durable).toEqual([1, 2, 3])
    expect(failures).toHaveLength(3)
    expect(failures[0]).toMatchObject({
      operation: 'replicate',
      failure: 'timeout',
      message: '0 of 1 replicas confirmed in time; see store.replicas',
    })
    expect(transitions).toEqual(['up'])
  })

  it('H136 fails if the primary ends before the replica has it: it may be lost', async () => {
    const { primary, replica } = await startPair()
    const { store, failures } = await open(`valkey://${primary.at}`, { replicas: 1 })
    replica.freeze()
    const failure = failureOf(store.runDurably(ADD, [KEY], [1]))
    await until(async () => (await primary.command('GET', KEY)) === '1')
    await primary.kill()
    expect(await failure).toBe('disconnected')
    expect(failures.map(({ operation }) => operation)).toContain('replicate')
    replica.thaw()
  })
})

describe('an address that moves to the replica', () => {
  it('H136 is used again after a failover, and nothing confirmed is lost', async () => {
    const { primary, replica } = await startPair()
    const address = await startRelay(primary.port)
    const { store, failures, transitions, connectAgain } = await open(`valkey://127.0.0.1:${address.port}`, {
      replicas: 1,
    })
    expect(transitions).toEqual(['up'])
    expect(await store.runDurably(ADD, [KEY], [7])).toBe(7)
    const id = String(await store.runDurably(REVOKE, ['{postern}:events'], ['a']))
    expect(failures).toEqual([])
    await primary.kill()
    await expect.poll(() => store.up).toBe(false)
    await replica.command('REPLICAOF', 'NO', 'ONE')
    address.lead(replica.port)
    await connectAgain()
    expect(await store.run(READ, [KEY], [])).toBe('7')
    expect(await replica.command('GET', KEY)).toBe('7')
    await expect.poll(() => failureOf(store.follow('{postern}:events', '0-0'))).toBe('none')
    expect(await store.follow('{postern}:events', '0-0')).toEqual([{ id, fields: ['grant', 'a'] }])
  })

  it('H136 is followed when the former primary is made a replica and its connections stay open', async () => {
    const { primary, replica } = await startPair()
    const address = await startRelay(primary.port)
    const { store, connectAgain } = await open(`valkey://127.0.0.1:${address.port}`)
    await store.run(ADD, [KEY], [1])
    await replica.command('REPLICAOF', 'NO', 'ONE')
    address.lead(replica.port)
    await primary.command('REPLICAOF', '127.0.0.1', String(replica.port))
    await expect
      .poll(async () => {
        await store.run(ADD, ['{postern}:new'], [1]).catch(() => {})
        await connectAgain()
        return await replica.command('EXISTS', '{postern}:new')
      })
      .toBe('1')
  })
})
