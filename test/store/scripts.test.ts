import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { ADD, KEY, open, READ, REVOKE } from './opened.ts'
import { startRelay } from './relay.ts'

let redis: RedisServer

beforeAll(async () => {
  if (isInstalled('redis-server')) redis = await startRedis()
})

beforeEach(async () => {
  needs('redis-server')
  await redis.command('FLUSHALL')
})

describe('a script', () => {
  it('gets its keys and arguments, and returns its reply', async () => {
    const { store, transitions, durations } = await open(`valkey://${redis.at}`)
    expect(transitions).toEqual(['up'])
    expect(store.up).toBe(true)
    expect(store.prefix).toBe('{postern}:')
    expect(await store.run(ADD, [KEY], [7])).toBe(7)
    expect(await store.run(READ, [KEY], [])).toBe('7')
    expect(await store.run(READ, ['{postern}:other'], [])).toBe(null)
    const source = 'return {1, "a", false, {KEYS[1], ARGV[1]}, true}'
    expect(await store.run({ name: 'list', source }, [KEY], ['ä'])).toEqual([1, 'a', null, [KEY, 'ä'], 1])
    expect(durations).toHaveLength(4)
  })

  it('runs on a server that has forgotten it', async () => {
    const { store, failures } = await open(`valkey://${redis.at}`)
    expect(await store.run(ADD, [KEY], [1])).toBe(1)
    await redis.command('SCRIPT', 'FLUSH')
    expect(await Promise.all([store.run(ADD, [KEY], [1]), store.run(ADD, [KEY], [1])])).toEqual([2, 3])
    expect(failures).toEqual([])
  })

  it('in the selected database', async () => {
    const { store } = await open(`valkey://${redis.at}/3`)
    await store.run(ADD, [KEY], [5])
    expect(await redis.command('-n', '3', 'GET', KEY)).toBe('5')
  })

  it('travels in one packet with the others of its turn', async () => {
    const relay = await startRelay(redis.port)
    const { store } = await open(`valkey://127.0.0.1:${relay.port}`)
    await store.run(ADD, [KEY], [0])
    const before = relay.packets()
    const sums = await Promise.all(Array.from({ length: 50 }, () => store.run(ADD, [KEY], [1])))
    expect(sums).toEqual(Array.from({ length: 50 }, (_, index) => index + 1))
    expect(relay.packets() - before).toBe(1)
  })

  it('with an error is reported without its arguments', async () => {
    const { store, failures } = await open(`valkey://${redis.at}`)
    const source = "return redis.call('INCRBY', KEYS[1], 'hunter2')"
    const error = await store.run({ name: 'issue', source }, [KEY], ['hunter2']).catch((each) => each)
    expect(error).toMatchObject({ name: 'StoreUnavailable', operation: 'issue', failure: 'error' })
    expect(error.message).toBe(
      'the server responds with an error: ERR value is not an integer or out of range',
    )
    expect(failures).toEqual([error])
    expect(store.up).toBe(true)
  })
})

describe('following a stream', () => {
  it('returns the entries after an id, and waits for the first one', async () => {
    const { store } = await open(`valkey://${redis.at}`)
    const waiting = store.follow('{postern}:events', '0-0')
    const id = await store.run(REVOKE, ['{postern}:events'], ['a'])
    expect(await waiting).toEqual([{ id, fields: ['grant', 'a'] }])
    const next = await store.run(REVOKE, ['{postern}:events'], ['b'])
    expect(await store.follow('{postern}:events', String(id))).toEqual([{ id: next, fields: ['grant', 'b'] }])
  })

  it('delays no script, and returns nothing if no entry comes', async () => {
    const { store } = await open(`valkey://${redis.at}`)
    let over = false
    const waiting = store.follow('{postern}:events', '$').finally(() => {
      over = true
    })
    expect(await store.run(ADD, [KEY], [1])).toBe(1)
    expect(over).toBe(false)
    expect(await waiting).toEqual([])
  })

  it('returns at most 1000 entries', async () => {
    const { store } = await open(`valkey://${redis.at}`)
    const many = "for i = 1, 1500 do redis.call('XADD', KEYS[1], i .. '-0', 'grant', 'x') end"
    await store.run({ name: 'revoke', source: many }, ['{postern}:events'], [])
    const first = await store.follow('{postern}:events', '0-0')
    expect(first).toHaveLength(1000)
    expect(await store.follow('{postern}:events', first.at(-1)?.id ?? '')).toHaveLength(500)
  })
})
