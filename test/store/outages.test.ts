import { EventEmitter, once } from 'node:events'
import net from 'node:net'
import { beforeEach, describe, expect, it } from 'vitest'
import { FOLLOW_WAIT } from '../../src/fleet/shared-store.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { unusedPort } from '../support/raw.ts'
import { startRedis } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { ADD, failureOf, KEY, open, READ, REVOKE } from './opened.ts'
import { startRelay } from './relay.ts'

beforeEach(() => needs('redis-server'))

describe('a server that is down', () => {
  it('H136 does not keep the store from opening, and is used as soon as it is there', async () => {
    const port = await unusedPort()
    const { store, transitions, failures, connectAgain } = await open(`valkey://127.0.0.1:${port}`)
    expect(store.up).toBe(false)
    expect(transitions).toEqual([`down: disconnected: connect ECONNREFUSED 127.0.0.1:${port}`])
    expect(await failureOf(store.run(ADD, [KEY], [1]))).toBe('disconnected')
    expect(await failureOf(store.runDurably(ADD, [KEY], [1]))).toBe('disconnected')
    expect(await failureOf(store.follow('{postern}:events', '$'))).toBe('disconnected')
    expect(failures.map(({ operation }) => operation)).toEqual(
      expect.arrayContaining(['connect', 'count', 'count', 'follow']),
    )
    await startRedis({ port })
    await connectAgain()
    expect(await store.run(ADD, [KEY], [1])).toBe(1)
    expect(transitions).toHaveLength(2)
  })

  it('H136 by kill -9 fails what was asked, and is used again after its restart', async () => {
    const redis = await startRedis()
    const { store, transitions, connectAgain } = await open(`valkey://${redis.at}`)
    await store.run(ADD, [KEY], [1])
    const following = failureOf(store.follow('{postern}:events', '$'))
    await redis.kill()
    expect(await following).toBe('disconnected')
    await expect.poll(() => store.up).toBe(false)
    expect(await failureOf(store.run(ADD, [KEY], [1]))).toBe('disconnected')
    await redis.restart()
    await connectAgain()
    expect(await store.run(READ, [KEY], [])).toBe(null)
    await expect.poll(() => failureOf(store.follow('{postern}:events', '0-0'))).toBe('none')
    expect(transitions.map((each) => each.split(':')[0])).toEqual(['up', 'down', 'up'])
  })
})

describe('a server that does not answer', () => {
  it('H135 (stopped) fails every question once, in time, and is used again when it continues', async () => {
    const redis = await startRedis()
    const { store, transitions, failures, clock, connectAgain } = await open(`valkey://${redis.at}`)
    await store.run(ADD, [KEY], [1])
    redis.freeze()
    const asked = Array.from({ length: 2_000 }, () => failureOf(store.run(ADD, [KEY], [1])))
    await clock.advance(4_999)
    expect(store.up).toBe(true)
    await clock.advance(1)
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['timeout']))
    expect(store.up).toBe(false)
    expect(await failureOf(store.run(ADD, [KEY], [1]))).toBe('timeout')
    expect(failures.filter(({ operation }) => operation === 'count')).toHaveLength(2_001)
    redis.thaw()
    await connectAgain()
    // The server has run what it had received, and nothing twice.
    expect(Number(await store.run(READ, [KEY], []))).toBeLessThanOrEqual(2_001)
    expect(transitions).toEqual(['up', 'down: timeout: the server does not reply within 5s', 'up'])
  })

  it('H135 (half-open) fails every question in time, and gives no late reply to another one', async () => {
    const redis = await startRedis()
    const relay = await startRelay(redis.port)
    const url = `valkey://127.0.0.1:${relay.port}`
    const { store, transitions, clock, connectAgain } = await open(url, { timeout: 1_000 })
    await store.run(ADD, [KEY], [1])
    relay.swallow()
    const following = failureOf(store.follow('{postern}:events', '$'))
    await clock.advance(FOLLOW_WAIT + 999)
    expect(store.up).toBe(true)
    await clock.advance(1)
    expect(await following).toBe('timeout')
    // The network lets new connections through.
    await connectAgain()
    expect(await store.run(READ, [KEY], [])).toBe('1')
    expect(transitions.map((each) => each.split(':')[0])).toEqual(['up', 'down', 'up'])
  })

  it('H135 keeps no more than 10,000 questions', async () => {
    const redis = await startRedis()
    const { store, transitions } = await open(`valkey://${redis.at}`, { timeout: 20_000 })
    // After its reply, the question of the start is answered, too.
    await store.run(READ, [KEY], [])
    redis.freeze()
    const asked = Array.from({ length: 10_100 }, () => failureOf(store.run(ADD, [KEY], [1])))
    const early = asked.slice(10_000)
    expect(new Set(await Promise.all(early))).toEqual(new Set(['timeout']))
    expect(store.up).toBe(true)
    redis.thaw()
    expect(new Set(await Promise.all(asked.slice(0, 10_000)))).toEqual(new Set(['none']))
    expect(transitions).toEqual(['up'])
  })

  it('H135 even to a connection is tried again, with one attempt at a time', async () => {
    const silent = await startSilent()
    const clock = stillClock()
    const opening = open(`valkey://127.0.0.1:${silent.port}`, {}, clock)
    await expect.poll(silent.accepted).toBe(1)
    await clock.advance(5_000)
    const { store, transitions } = await opening
    await expect.poll(() => transitions).toEqual(['down: timeout: the server does not reply within 5s'])
    for (let attempt = 2; attempt <= 6; attempt += 1) {
      await passUntil(
        clock,
        silent.until(() => silent.open() === 0),
      )
      await passUntil(
        clock,
        silent.until(() => silent.accepted() === attempt),
      )
    }
    // The others open when the first one has found the primary.
    expect(silent.mostOpen()).toBe(1)
    await store.close()
    await expect.poll(silent.open).toBe(0)
  })

  it('H135 delays the start by its timeout', async () => {
    const silent = await startSilent()
    const clock = stillClock()
    let isOpen = false
    const opening = open(`valkey://127.0.0.1:${silent.port}`, { timeout: 1_000 }, clock)
    void opening.then(() => {
      isOpen = true
    })
    await expect.poll(silent.accepted).toBe(1)
    await clock.advance(999)
    expect(isOpen).toBe(false)
    await clock.advance(1)
    const { store } = await opening
    expect(store.up).toBe(false)
    expect(['disconnected', 'timeout']).toContain(await failureOf(store.run(ADD, [KEY], [1])))
  })
})

/** A server that accepts connections and never answers. It ends with the test. */
async function startSilent() {
  const sockets = new Set<net.Socket>()
  let [accepted, most] = [0, 0]
  const changes = new EventEmitter()
  const server = net.createServer((socket) => {
    accepted += 1
    sockets.add(socket.resume())
    most = Math.max(most, sockets.size)
    socket
      .on('error', () => {})
      .on('close', () => {
        sockets.delete(socket)
        changes.emit('change')
      })
    changes.emit('change')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeLater(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    port: address.port,
    accepted: () => accepted,
    open: () => sockets.size,
    mostOpen: () => most,
    async until(holds: () => boolean): Promise<void> {
      while (!holds()) await once(changes, 'change')
    },
  }
}

describe('a session', () => {
  it('H136 ends with the first of its connections, and the next one begins with all of them', async () => {
    const redis = await startRedis()
    const relay = await startRelay(redis.port)
    const url = `valkey://127.0.0.1:${relay.port}`
    const { store, transitions, connectAgain } = await open(url, { replicas: 1 })
    for (let connection = 0; connection < 3; connection += 1) {
      await expect.poll(() => relay.open()).toBe(3)
      const accepted = relay.accepted()
      const ids = [...(await redis.command('CLIENT', 'LIST')).matchAll(/^id=(\d+) .*cmd=(?!client)/gm)]
      await redis.command('CLIENT', 'KILL', 'ID', ids[connection]?.[1] ?? '')
      await expect.poll(() => store.up).toBe(false)
      await connectAgain()
      await expect.poll(() => relay.accepted()).toBe(accepted + 3)
      await expect.poll(() => failureOf(store.run(ADD, [KEY], [1]))).toBe('none')
    }
    expect(relay.open()).toBe(3)
    expect(transitions.map((each) => each.split(':')[0])).toEqual([
      'up',
      ...Array(3).fill(['down', 'up']).flat(),
    ])
  })
})

describe('closing', () => {
  it('H135 ends what is pending, and leaves no connection', async () => {
    const redis = await startRedis()
    const relay = await startRelay(redis.port)
    const { store } = await open(`valkey://127.0.0.1:${relay.port}`, { replicas: 1 })
    await store.run(REVOKE, ['{postern}:events'], ['a'])
    expect(relay.open()).toBe(3)
    redis.freeze()
    const pending = [
      failureOf(store.run(ADD, [KEY], [1])),
      failureOf(store.runDurably(ADD, [KEY], [1])),
      failureOf(store.follow('{postern}:events', '$')),
    ]
    await store.close()
    expect(await Promise.all(pending)).toEqual(['disconnected', 'disconnected', 'disconnected'])
    expect(await failureOf(store.run(ADD, [KEY], [1]))).toBe('disconnected')
    await expect.poll(() => relay.open()).toBe(0)
    redis.thaw()
  })
})

describe('a floating address', () => {
  it('H136 leads to the new primary as soon as the old one is a replica', async () => {
    const [old, next] = [await startRedis(), await startRedis()]
    const relay = await startRelay(old.port)
    const { store, transitions, connectAgain } = await open(`valkey://127.0.0.1:${relay.port}`)
    await store.run(ADD, [KEY], [1])
    let isReplica = false
    // A question may end without news before the server changes. One that comes between then waits at the replica, which a script that
    // writes finds out.
    const failed = async (): Promise<void> => {
      const failure = await failureOf(store.follow('{postern}:events', '$'))
      if (failure !== 'none' || transitions.length > 1) return
      if (isReplica) expect(await failureOf(store.run(ADD, [KEY], [1]))).toBe('read-only')
      else await failed()
    }
    const following = failed()
    relay.lead(next.port)
    await old.command('REPLICAOF', '127.0.0.1', String(next.port))
    isReplica = true
    await following
    await connectAgain()
    const id = await store.run(REVOKE, ['{postern}:events'], ['a'])
    expect(await next.command('XLEN', '{postern}:events')).toBe('1')
    await expect.poll(() => failureOf(store.follow('{postern}:events', '0-0'))).toBe('none')
    expect(await store.follow('{postern}:events', '0-0')).toEqual([{ id, fields: ['grant', 'a'] }])
    expect(transitions.map((each) => each.split(':')[0])).toEqual(['up', 'down', 'up'])
  })

  it('H136 that leads to a replica is no store', async () => {
    const primary = await startRedis()
    const replica = await startRedis({ settings: [`replicaof 127.0.0.1 ${primary.port}`] })
    const { store, transitions, connectAgain } = await open(`valkey://${replica.at}`)
    expect(store.up).toBe(false)
    expect(transitions).toEqual(['down: read-only: the server is a replica, which accepts no writes'])
    await replica.command('REPLICAOF', 'NO', 'ONE')
    await connectAgain()
    expect(store.up).toBe(true)
  })
})
