import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import {
  createFleetPlaces,
  type FleetPlaces,
  type FleetWall,
  type PlacesEvent,
  type PlacesMember,
  type SharedPlaces,
} from '../../src/fleet/places.ts'
import type { Script, SharedStore } from '../../src/fleet/shared-store.ts'
import { open } from '../store/opened.ts'
import { movableClock } from '../support/clock.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { needs } from '../support/tools.ts'

beforeEach(() => needs('redis-server'))

const WEEK = 168 * 3_600_000
const clock = movableClock()

/** A sidecar without a device: it holds what it was given, and all of it is in use. */
class Sidecar implements PlacesMember {
  readonly name: string
  readonly #id: string
  readonly events: PlacesEvent[] = []
  share: number | undefined
  isActive = true
  carries = false
  heard: SharedPlaces | undefined
  /** Each share that it was given. A sidecar also asks by itself, once a second. */
  readonly given: (number | undefined)[] = []
  places: FleetPlaces | undefined

  constructor(id: string, share?: number, name = 'http://192.0.2.7 1-64') {
    this.#id = id
    this.share = share
    this.name = name
  }
  standing() {
    const { share, isActive, carries, heard } = this
    const known: FleetWall | undefined = heard && { ...heard }
    return { sidecar: this.#id, share, inside: share ?? 0, isActive, carries, known }
  }
  adopt(places: SharedPlaces): void {
    this.heard = places
    this.given.push(places.share)
    if (places.share !== undefined) this.share = places.share
  }
  alone(): void {}
  /** Asks once, after it has told what has happened. */
  async ask(kind?: PlacesEvent['kind'], limit = 0): Promise<number | undefined> {
    if (kind !== undefined) this.events.push({ kind, limit, at: clock.monotonic() })
    await this.places?.news()
    return this.heard?.share
  }
}

/** However slow the machine is, no sidecar counts as gone. */
const STAY: Script = {
  name: 'places',
  source: `
for _, id in ipairs(redis.call('ZRANGE', KEYS[1] .. ':all', 0, -1)) do
  redis.call('ZADD', KEYS[1] .. ':all', 9e15, id)
  redis.call('PEXPIRE', KEYS[1] .. ':' .. id, 3600000)
end`,
}

/** A sidecar has been silent for 30 s. */
const FALL_SILENT: Script = { name: 'places', source: "redis.call('DEL', KEYS[1] .. ':' .. ARGV[1])" }

/** It has been silent for an hour. */
const GO: Script = {
  name: 'places',
  source: "redis.call('ZREM', KEYS[1] .. ':all', ARGV[1]) redis.call('DEL', KEYS[1] .. ':' .. ARGV[1])",
}

/** The server was emptied just now. */
const STAY_YOUNG: Script = { name: 'places', source: "redis.call('HSET', KEYS[1], 'since', '9e15')" }

interface Bed {
  readonly redis: RedisServer
  readonly store: SharedStore
  join<Joined extends Sidecar>(sidecar: Joined): Promise<Joined>
  /** The key of the wall. */
  key(): Promise<string>
}

async function startBed(): Promise<Bed> {
  const redis = await startRedis()
  const { store } = await open(`valkey://${redis.at}`)
  const onBug = (error: unknown): never => {
    throw error
  }
  return {
    redis,
    store,
    async join(sidecar) {
      sidecar.places = createFleetPlaces({ store, clock, onBug })
      await sidecar.places.join(sidecar)
      return sidecar
    },
    async key() {
      const keys = (await redis.command('KEYS', '*p:*')).split('\n')
      return keys.sort((a, b) => a.length - b.length)[0] ?? ''
    },
  }
}

const stateOf = ({ heard }: Sidecar) => `${heard?.kind} ${heard?.sum}`

describe('H286 the places of a fleet', () => {
  it('are the sum of what worked when the device broke; each sidecar adds its part once', async () => {
    const { join } = await startBed()
    const [a, b, c] = [new Sidecar('a', 2), new Sidecar('b', 3), new Sidecar('c', 9)]
    for (const each of [a, b, c]) await join(each)
    expect(await a.ask()).toBeUndefined()
    expect(await a.ask('broke', 2)).toBe(2)
    expect(stateOf(a)).toBe('broke 2')
    await b.ask('broke', 2)
    await b.ask('had', 2)
    await c.ask('had', 3)
    await c.ask('had', 3)
    expect(stateOf(c)).toBe('broke 7')
    expect(c.heard?.left).toBeGreaterThan(WEEK - 60_000)
    for (const each of [a, b, c]) await each.ask()
    expect([a.share, b.share, c.share]).toEqual([3, 2, 2])
  })

  it('are those of one service of one device', async () => {
    const { join } = await startBed()
    const a = await join(new Sidecar('a', 2))
    const other = await join(new Sidecar('b', 9, 'http://192.0.2.8 1-64'))
    await a.ask('broke', 2)
    expect(await other.ask()).toBeUndefined()
  })

  it('pass to a sidecar that joins when the others have less, and back when it has left', async () => {
    const { redis, store, join, key } = await startBed()
    const a = await join(new Sidecar('a', 4))
    await a.ask('broke', 4)
    const b = await join(new Sidecar('b'))
    expect(b.share).toBe(0)
    expect(await a.ask()).toBe(2)
    expect(await b.ask()).toBe(0)
    await a.ask()
    expect(await b.ask()).toBe(2)
    await b.places?.close()
    expect(await a.ask()).toBe(2)
    const again = await join(new Sidecar('b'))
    expect(again.share).toBe(2)
    await again.places?.close()
    expect(Number(await redis.command('ZSCORE', `${await key()}:all`, 'b'))).toBeLessThan(Date.now() + 60_000)
    await store.run(GO, [await key()], ['b'])
    expect(await a.ask()).toBe(4)
  })

  it('H290 pass from a sidecar that is silent, but for one: it may still be at the device', async () => {
    const { store, join, key } = await startBed()
    const a = await join(new Sidecar('a', 4))
    await a.ask('broke', 4)
    const b = await join(new Sidecar('b'))
    for (const each of [a, a, b]) await each.ask()
    expect([a.share, b.share]).toEqual([2, 2])
    b.given.length = 0
    await expect
      .poll(async () => {
        await store.run(FALL_SILENT, [await key()], ['b'])
        return a.ask()
      })
      .toBe(3)
    // It was not there, and has not heard that it has one place only.
    await b.ask()
    expect(b.given).toContain(1)
    for (const each of [a, a, b]) await each.ask()
    expect([a.share, b.share]).toEqual([2, 2])
  })

  it('are at least one for each; a standby without requests has no more', async () => {
    const { join } = await startBed()
    const a = await join(new Sidecar('a', 4))
    await a.ask('broke', 4)
    const standby = await join(new Sidecar('b', 2))
    standby.isActive = false
    for (const each of [standby, a, standby]) await each.ask()
    expect([a.share, standby.share]).toEqual([3, 1])
    standby.isActive = true
    for (const each of [standby, a, a, standby]) await each.ask()
    expect([a.share, standby.share]).toEqual([2, 2])
    const many = ['c', 'd', 'e', 'f'].map((id) => new Sidecar(id))
    for (const each of many) await join(each)
    for (let round = 0; round < 3; round += 1) for (const each of [a, standby, ...many]) await each.ask()
    expect([a, standby, ...many].map(({ share }) => share)).toEqual(Array(6).fill(1))
  })

  it('are together never more than the wall, whoever comes, goes, asks or gets no answer', async () => {
    const { redis, store, join, key } = await startBed()
    const found = await join(new Sidecar('a', 6))
    await found.ask('broke', 6)
    const keys = [await key()]
    const step = fc.record({
      at: fc.nat(4),
      act: fc.constantFrom('ask', 'ask', 'ask', 'leave', 'silent', 'lose', 'rest', 'empty'),
    })
    let present: Sidecar[] = [found]
    let next = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 30, maxLength: 30 }), async (steps) => {
        for (const { at, act } of steps) {
          await store.run(STAY, keys, [])
          const sidecar = present[at]
          if (sidecar === undefined) {
            next += 1
            present.push(await join(new Sidecar(`s${next}`)))
          } else if (act === 'leave' && present.length > 1) {
            present = present.filter((each) => each !== sidecar)
            await store.run(GO, keys, [sidecar.standing().sidecar])
          } else if (act === 'silent') {
            // By now it has one place itself.
            sidecar.share = Math.min(sidecar.share ?? 0, 1)
            await store.run(FALL_SILENT, keys, [sidecar.standing().sidecar])
          } else if (act === 'empty') {
            await redis.command('FLUSHALL')
            // On a busy machine an answer may fail to come, and then the server has not learned of its loss.
            do await present.find(({ heard }) => heard !== undefined)?.ask()
            while ((await redis.command('EXISTS', keys[0] ?? '')) !== '1')
            await store.run(STAY_YOUNG, keys, [])
          } else if (act === 'lose') {
            const before = sidecar.share
            await sidecar.ask()
            sidecar.share = before
          } else if (act === 'rest') sidecar.isActive = !sidecar.isActive
          else await sidecar.ask()
          expect(present.reduce((sum, { share = 0 }) => sum + share, 0)).toBeLessThanOrEqual(6)
        }
      }),
      { numRuns: 6 },
    )
  })
})

describe('H286 the attempt with one more', () => {
  /** A wall of 4 at two sidecars, whose week is over. */
  async function afterWeek() {
    const bed = await startBed()
    const [a, b] = [await bed.join(new Sidecar('a', 4)), await bed.join(new Sidecar('b', 1))]
    await a.ask('broke', 4)
    for (const each of [b, a, a, b]) await each.ask()
    expect([a.share, b.share]).toEqual([2, 2])
    const key = await bed.key()
    // Its own outage was a week ago.
    await bed.redis.command('HSET', key, 'till', '1', 'at', '1')
    for (const each of [a, b, a]) await each.ask()
    expect([stateOf(a), a.share, b.share]).toEqual(['tried 4', 3, 2])
    return { ...bed, a, b, key }
  }

  it('H264 is made at one sidecar; if it breaks the device, none makes it again', async () => {
    const { redis, key, a, b } = await afterWeek()
    await a.ask('struck')
    expect(stateOf(a)).toBe('struck 4')
    await a.ask('broke', 2)
    expect(stateOf(a)).toBe('barred 4')
    await b.ask('had', 2)
    await b.ask('doubted')
    await redis.command('HSET', key, 'till', '1')
    for (const each of [a, b]) await each.ask()
    expect([stateOf(b), a.share, b.share]).toEqual(['barred 4', 2, 2])
  })

  it('H264 ends without an outcome: the next one is a week later', async () => {
    const { a } = await afterWeek()
    expect(await a.ask('struck')).toBe(2)
    expect(a.heard?.left).toBeGreaterThan(WEEK - 60_000)
  })

  it('H264 works only if all carry what they have', async () => {
    const { a, b } = await afterWeek()
    a.carries = true
    await a.ask()
    expect(stateOf(a)).toBe('tried 4')
    b.carries = true
    expect(await b.ask()).toBeUndefined()
    expect(await a.ask()).toBeUndefined()
    expect(stateOf(a)).toBe('works 4')
  })
})

describe('the wall of a fleet', () => {
  it('H264 is doubted by an outage with no more, but not by a sidecar that has not heard the last word', async () => {
    const { join } = await startBed()
    const [a, b] = [await join(new Sidecar('a', 4)), await join(new Sidecar('b', 1))]
    await b.ask('doubted')
    await a.ask('broke', 4)
    await b.ask('doubted')
    expect(stateOf(b)).toBe('broke 4')
    expect(await b.ask('doubted')).toBeUndefined()
    await a.ask()
    expect(stateOf(a)).toBe('doubted 4')
  })

  it('H288 is lifted for all', async () => {
    const { join } = await startBed()
    const [a, b] = [await join(new Sidecar('a', 4)), await join(new Sidecar('b', 1))]
    await a.ask('broke', 4)
    await b.ask()
    expect(await b.ask('lifted')).toBeUndefined()
    expect(await a.ask()).toBeUndefined()
    expect(stateOf(a)).toBe('lifted 0')
  })

  it('H287 is told again to a server that was emptied, and a later word counts more than an earlier one', async () => {
    const { redis, join } = await startBed()
    const [a, b] = [await join(new Sidecar('a', 4)), await join(new Sidecar('b', 1))]
    await a.ask('broke', 4)
    await b.ask()
    await redis.command('FLUSHALL')
    await b.ask()
    expect(stateOf(b)).toBe('broke 4')
    await b.ask('lifted')
    await redis.command('FLUSHALL')
    expect(await a.ask()).toBeDefined()
    await b.ask()
    expect(stateOf(b)).toBe('lifted 0')
    expect(await a.ask()).toBeUndefined()
  })
})
