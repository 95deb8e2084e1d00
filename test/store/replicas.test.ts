import { beforeEach, describe, expect, it } from 'vitest'
import {
  type RedisGroup,
  type RedisServer,
  startCluster,
  startGroup,
  startRedis,
  until,
} from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { ADD, failureOf, KEY, open, READ, REVOKE } from './opened.ts'
import { startRelay } from './relay.ts'

beforeEach(() => needs('redis-server'))

const sentinelsOf = ({ sentinels }: RedisGroup): string => sentinels.map(({ at }) => at).join(',')

describe('a script that replicas confirm', () => {
  it('H136 is answered when the replica has it', async () => {
    const primary = await startRedis()
    const replica = await startRedis({ settings: [`replicaof 127.0.0.1 ${primary.port}`] })
    await until(async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'))
    const { store, failures } = await open(`valkey://${primary.at}`, { replicas: 1 })
    const sums = await Promise.all(Array.from({ length: 20 }, () => store.runDurably(ADD, [KEY], [1])))
    expect(Math.max(...sums.map(Number))).toBe(20)
    expect(await replica.command('GET', KEY)).toBe('20')
    expect(failures).toEqual([])
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
    const primary = await startRedis()
    const replica = await startRedis({ settings: [`replicaof 127.0.0.1 ${primary.port}`] })
    await until(async () => (await replica.command('INFO', 'replication')).includes('master_link_status:up'))
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

describe('a Sentinel group', () => {
  it('H136 is used again after a failover, and nothing confirmed is lost', async () => {
    const group = await startGroup(2)
    const { store, failures, transitions } = await open(`valkey+sentinel://${sentinelsOf(group)}/main`)
    expect(transitions).toEqual(['up'])
    expect(await store.runDurably(ADD, [KEY], [7])).toBe(7)
    const id = String(await store.runDurably(REVOKE, ['{postern}:events'], ['a']))
    expect(failures).toEqual([])
    await group.primary.kill()
    await expect.poll(() => store.up).toBe(false)
    await expect.poll(() => store.up).toBe(true)
    expect(await store.run(READ, [KEY], [])).toBe('7')
    expect(await group.replica.command('GET', KEY)).toBe('7')
    await expect.poll(() => failureOf(store.follow('{postern}:events', '0-0'))).toBe('none')
    expect(await store.follow('{postern}:events', '0-0')).toEqual([{ id, fields: ['grant', 'a'] }])
  })

  it('H136 is left for the new primary, when the old one is cut off from the sentinels only', async () => {
    const group = await startGroup(1)
    const { store } = await open(`valkey+sentinel://${sentinelsOf(group)}/main`, { replicas: 0 })
    await store.run(ADD, [KEY], [1])
    // The sentinel monitors another server from now on, as after a failover that the old primary has not seen.
    const [sentinel] = group.sentinels
    await group.replica.command('REPLICAOF', 'NO', 'ONE')
    await sentinel?.command('SENTINEL', 'REMOVE', 'main')
    await sentinel?.command('SENTINEL', 'MONITOR', 'main', '127.0.0.1', String(group.replica.port), '1')
    await expect
      .poll(async () => {
        await store.run(ADD, ['{postern}:new'], [1]).catch(() => {})
        return await group.replica.command('EXISTS', '{postern}:new')
      })
      .toBe('1')
  })

  it('H145 whose former primary still answers: a run that it cannot confirm fails', async () => {
    const group = await startGroup(1)
    const [sentinel] = group.sentinels
    const { store } = await open(`valkey+sentinel://${sentinelsOf(group)}/main`, { timeout: 1_000 })
    await group.replica.command('REPLICAOF', 'NO', 'ONE')
    await sentinel?.command('SENTINEL', 'REMOVE', 'main')
    await sentinel?.command('SENTINEL', 'MONITOR', 'main', '127.0.0.1', String(group.replica.port), '1')
    for (let run = 0; run < 10; run++) {
      const failure = await failureOf(store.runDurably(ADD, [KEY], [1]))
      if (failure !== 'none') continue
      expect(Number(await group.replica.command('GET', KEY))).toBeGreaterThan(0)
    }
    await expect.poll(() => failureOf(store.runDurably(ADD, [KEY], [1]))).toBe('none')
  })

  it('H145 with one sentinel that names another server is used as the others say', async () => {
    const servers = await Promise.all([startRedis(), startRedis()])
    // The stranger has the name that decides a tie, so it is used unless the sentinels are counted.
    const [stranger, primary] = servers.toSorted((a, b) => (a.at < b.at ? -1 : 1)) as typeof servers
    const monitor = (at: RedisServer) =>
      startRedis({ sentinel: true, settings: [`sentinel monitor main 127.0.0.1 ${at.port} 2`] })
    const sentinels = await Promise.all([primary, primary, stranger].map(monitor))
    const relays = await Promise.all(sentinels.map(({ port }) => startRelay(port)))
    const names = relays.map(({ port }) => `127.0.0.1:${port}`).join(',')
    const { store, transitions } = await open(`valkey+sentinel://${names}/main`, { timeout: 1_000 })
    await expect.poll(() => store.up).toBe(true)
    const before = transitions.length
    await store.run(REVOKE, ['{postern}:events'], ['a'])
    // Each connection may first have led to the stranger.
    await expect.poll(() => failureOf(store.follow('{postern}:events', '0-0'))).toBe('none')
    await expect.poll(() => failureOf(store.runDurably(ADD, [KEY], [1]))).toBe('none')
    const accepted = (): number => relays.reduce((sum, each) => sum + each.accepted(), 0)
    await expect.poll(() => relays.every((each) => each.open() > 0)).toBe(true)
    const connections = accepted()
    for (let run = 0; run < 12; run++) await store.runDurably(ADD, [KEY], [1])
    expect(transitions).toHaveLength(before)
    expect(accepted() - connections).toBeLessThan(6)
    expect(Number(await primary.command('GET', KEY))).toBeGreaterThan(12)
    expect(await stranger.command('EXISTS', KEY)).toBe('0')
  })

  it('H145 of which one knows of a failover before the others is believed', async () => {
    const [former, promoted] = await Promise.all([startRedis(), startRedis()])
    const monitor = (at: RedisServer, epoch: number) =>
      startRedis({
        sentinel: true,
        settings: [`sentinel monitor main 127.0.0.1 ${at.port} 2`, `sentinel config-epoch main ${epoch}`],
      })
    const sentinels = await Promise.all([monitor(former, 3), monitor(former, 3), monitor(promoted, 4)])
    const { store } = await open(`valkey+sentinel://${sentinels.map(({ at }) => at).join(',')}/main`)
    await expect.poll(() => failureOf(store.runDurably(ADD, [KEY], [1]))).toBe('none')
    expect(Number(await promoted.command('GET', KEY))).toBeGreaterThan(0)
    expect(await former.command('EXISTS', KEY)).toBe('0')
  })

  it('H136 without users of its own refuses those of the servers, and is asked without them', async () => {
    const redis = await startRedis({ settings: ['user postern on >secret ~* +@all'] })
    const sentinel = await startRedis({
      sentinel: true,
      settings: [`sentinel monitor main 127.0.0.1 ${redis.port} 1`],
    })
    const { store } = await open(`valkey+sentinel://postern:secret@${sentinel.at}/main`, { replicas: 0 })
    expect(await store.run(ADD, [KEY], [1])).toBe(1)
    const unknown = await open(`valkey+sentinel://postern:secret@${sentinel.at}/other`)
    expect(unknown.transitions).toEqual([
      'down: disconnected: the sentinels monitor no primary with the name other; see the end of tokens.store',
    ])
  })
})

describe('a Cluster', () => {
  it('H136 of three is used at the node of the keys, whatever happens to the others', async () => {
    const { nodes, owner, others } = await startCluster()
    const [away, left] = others
    const url = `valkey+cluster://${nodes.map(({ at }) => at).join(',')}`
    const { store, transitions } = await open(url, { replicas: 0 })
    expect(await store.run(ADD, [KEY], [1])).toBe(1)
    expect(await owner.command('GET', KEY)).toBe('1')
    await away?.kill()
    expect(await store.run(ADD, [KEY], [1])).toBe(2)
    expect(transitions).toEqual(['up'])

    // A new sidecar knows the other nodes only.
    const { store: late } = await open(`valkey+cluster://${others.map(({ at }) => at).join(',')}`, {
      replicas: 0,
    })
    expect(await late.run(ADD, [KEY], [1])).toBe(3)

    // The slot moves to another node.
    await owner.command('DEL', KEY)
    const slot = await owner.command('CLUSTER', 'KEYSLOT', KEY)
    const idOf = async (node: typeof left): Promise<string> => (await node?.command('CLUSTER', 'MYID')) ?? ''
    const setSlot = async (node: typeof left, state: string, id: string): Promise<unknown> =>
      node?.command('CLUSTER', 'SETSLOT', slot, state, id)
    await setSlot(left, 'IMPORTING', await idOf(owner))
    await setSlot(owner, 'MIGRATING', await idOf(left))
    await setSlot(left, 'NODE', await idOf(left))
    await setSlot(owner, 'NODE', await idOf(left))
    expect(await failureOf(store.run(ADD, [KEY], [1]))).toBe('loading')
    await expect.poll(() => store.up).toBe(true)
    expect(await store.run(ADD, [KEY], [5])).toBe(5)
    expect(await left?.command('GET', KEY)).toBe('5')
  })
})
