import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ALONE } from '../../src/fleet/device-wall.ts'
import { PLACES } from '../../src/fleet/places.ts'
import { type Beat, divide, GONE, LIFE, TURN } from '../../src/fleet/shares.ts'
import { nextTurn } from '../../src/system/clock.ts'
import { open } from '../store/opened.ts'
import { stillClock } from '../support/clock.ts'
import { startRedis } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { Sidecar, startServer } from './places-bed.ts'

const HOUR = 3_600_000

/** Sidecars at one server. */
function startFleet() {
  const server = startServer()
  const { clock } = server
  const sidecars: Sidecar[] = []
  /** Processes that stand still. */
  const stalled = new Set<Sidecar>()
  /** Seconds pass. Each sidecar looks at its places once a second. */
  async function pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      await clock.advance(1_000)
      for (const sidecar of sidecars) if (!stalled.has(sidecar)) sidecar.places.look()
      await nextTurn()
    }
  }
  return {
    ...server,
    pass,
    stalled,
    async join(id: string, max = 64) {
      const { store, network } = server.connect()
      const sidecar = new Sidecar(id, store, clock, max)
      sidecars.push(sidecar)
      server.listeners.add(() => {
        if (sidecars.includes(sidecar) && !stalled.has(sidecar)) void sidecar.places.news()
      })
      await sidecar.join()
      return Object.assign(sidecar, { network })
    },
    /** It ends without a word. */
    end(sidecar: Sidecar) {
      sidecars.splice(sidecars.indexOf(sidecar), 1)
    },
    /** A wall that one sidecar has found, when the server has been there for a while. */
    async breaks(sidecar: Sidecar, limit: number) {
      await pass(40)
      await sidecar.tell('broke', limit)
      await pass(2)
      // The stream of the store tells of it.
      await Promise.all(sidecars.map(({ places }) => places.news()))
    },
  }
}

const sharesOf = (...sidecars: readonly Sidecar[]) => sidecars.map(({ share }) => share)

describe('H286 the places of a fleet', () => {
  it('are asked for every ten seconds by a sidecar without requests, and every second by one that has some', async () => {
    const { join, pass, fields } = startFleet()
    const sidecar = await join('a', 2)
    await pass(4)
    expect(sidecar.share).toBe(2)
    const settled = fields.get('a')
    await pass(7)
    expect(fields.get('a')).toBe(settled)
    await pass(1)
    const asked = fields.get('a')
    expect(asked).not.toBe(settled)
    sidecar.inside = 1
    await pass(1)
    expect(fields.get('a')).not.toBe(asked)
  })

  it('are those at which the device broke, with what the other sidecars had there; one outage counts once', async () => {
    const { join, pass, clock } = startFleet()
    const [a, b, c] = [await join('a'), await join('b'), await join('c')]
    await pass(40)
    ;[b.inside, c.inside] = [1, 3]
    await pass(1)
    await clock.advance(500)
    b.inside = 2
    await a.tell('broke', 2)
    // What the others had there when it broke, they say within a second.
    expect(a.wall).toBe(0)
    await pass(2)
    expect([a.wall, a.share]).toEqual([7, 3])
    await b.tell('broke', 2)
    await c.tell('broke', 3)
    c.inside = 2
    await pass(4)
    expect([a, b, c].map(({ wall }) => wall)).toEqual([7, 7, 7])
    expect(sharesOf(a, b, c)).toEqual([3, 2, 2])
  })

  it('pass to a sidecar that joins when the others have said that they have less, and back after it has left', async () => {
    const { join, breaks, pass, end } = startFleet()
    const a = await join('a')
    await breaks(a, 4)
    await pass(3)
    expect(a.share).toBe(4)
    const b = await join('b')
    expect(b.share).toBe(0)
    await pass(4)
    expect(sharesOf(a, b)).toEqual([2, 2])
    await b.places.close()
    end(b)
    await pass(28)
    expect(a.share).toBe(2)
    await pass(5)
    expect(a.share).toBe(4)
  })

  it('are kept for a sidecar that restarts: its id says that it is the same one', async () => {
    const { join, breaks, pass, end } = startFleet()
    const a = await join('a')
    await breaks(a, 4)
    const b = await join('b')
    await pass(4)
    end(b)
    await pass(10)
    const again = await join('b')
    expect(again.share).toBe(2)
    await pass(4)
    expect(sharesOf(a, again)).toEqual([2, 2])
  })

  it('H290 pass from a sidecar that is silent, but for one: it may still be at the device', async () => {
    const { join, breaks, pass, end } = startFleet()
    const [a, b, c] = [await join('a'), await join('b'), await join('c')]
    await breaks(a, 6)
    await pass(4)
    expect(sharesOf(a, b, c)).toEqual([2, 2, 2])
    b.network.away = true
    end(c)
    await pass(25)
    expect(sharesOf(a, b)).toEqual([2, 1])
    await pass(10)
    expect(sharesOf(a, b)).toEqual([4, 1])
    b.network.away = false
    await pass(5)
    expect(sharesOf(a, b)).toEqual([3, 2])
    await pass(HOUR / 1000)
    expect(sharesOf(a, b)).toEqual([3, 3])
  })

  it('H290 are one as soon as a process goes on that stood still for 20 s, before it has asked', async () => {
    const { join, breaks, pass, clock } = startFleet()
    const a = await join('a')
    await breaks(a, 4)
    await pass(4)
    await clock.advance(19_000)
    expect(a.most).toBe(4)
    await clock.advance(1_000)
    expect(a.most).toBe(1)
  })

  it('are one for a sidecar without requests, while those with requests leave some', async () => {
    const { join, breaks, pass } = startFleet()
    const a = await join('a')
    await breaks(a, 4)
    const standby = await join('b')
    standby.isActive = false
    await pass(4)
    expect(sharesOf(a, standby)).toEqual([3, 1])
    standby.isActive = true
    await pass(4)
    expect(sharesOf(a, standby)).toEqual([2, 2])
    standby.isActive = false
    const many = await Promise.all(['c', 'd', 'e'].map((id) => join(id)))
    await pass(6)
    expect(sharesOf(a, standby, ...many)).toEqual([1, 0, 1, 1, 1])
  })

  it('go round if more sidecars have requests than there are places: each has one in its turn, none grows beyond', async () => {
    const { join, breaks, pass } = startFleet()
    const a = await join('a')
    await breaks(a, 2)
    const all = [a, await join('b'), await join('c')]
    await pass(4)
    const had = new Set<string>()
    for (let second = 0; second < 60; second += 1) {
      await pass(1)
      const shares = sharesOf(...all)
      expect(shares.reduce((sum, share) => sum + share)).toBeLessThanOrEqual(2)
      for (const each of all) if (each.share === 1) had.add(each.id)
    }
    expect([...had].sort()).toEqual(['a', 'b', 'c'])
  })

  it('C25 are the configured ones where nothing broke: a sidecar that starts has one at once, and its part when the others have less', async () => {
    const { join, pass, end } = startFleet()
    const a = await join('a', 4)
    expect(a.share).toBe(1)
    await pass(3)
    expect(a.share).toBe(4)
    const b = await join('b', 4)
    expect(b.share).toBe(1)
    await pass(4)
    expect(sharesOf(a, b)).toEqual([2, 2])
    const more = [await join('c', 4), await join('d', 4), await join('e', 4)]
    expect(more.map(({ share }) => share).reduce((sum, share) => sum + share)).toBeLessThanOrEqual(3)
    await pass(6)
    expect(sharesOf(a, b, ...more).reduce((sum, share) => sum + share)).toBeLessThanOrEqual(4)
    for (const each of [b, ...more]) end(each)
    await pass(35)
    // Four silent ones may each have a request there, but the last place is for those that beat.
    expect(a.share).toBe(1)
    await pass(HOUR / 1000)
    expect(a.share).toBe(4)
  })

  it('C25 a sidecar that the store does not answer has one of the configured places', async () => {
    const { join, pass } = startFleet()
    const a = await join('a', 4)
    a.inside = 1
    await pass(3)
    a.network.away = true
    await pass(19)
    expect([a.share, a.most]).toEqual([4, 4])
    await pass(1)
    expect([a.share, a.most]).toEqual([1, 1])
    a.network.away = false
    await pass(4)
    expect(a.share).toBe(4)
  })

  it('do not grow while a sidecar has more requests at the device than its share', async () => {
    const { join, breaks, pass } = startFleet()
    const a = await join('a')
    await breaks(a, 4)
    a.inside = 4
    const b = await join('b')
    await pass(20)
    expect(sharesOf(a, b)).toEqual([2, 0])
    a.inside = 2
    await pass(4)
    expect(sharesOf(a, b)).toEqual([2, 2])
  })

  it('H287 are told again to a server that was emptied, where none grows before all have told theirs', async () => {
    const { join, breaks, pass, empty } = startFleet()
    const [a, b] = [await join('a'), await join('b')]
    await breaks(a, 6)
    await pass(4)
    expect(sharesOf(a, b)).toEqual([3, 3])
    b.network.away = true
    empty()
    const c = await join('c')
    await pass(15)
    expect([a.wall, ...sharesOf(a, b, c)]).toEqual([6, 3, 3, 1])
  })

  it('do not grow at a server that was restored: it takes those for silent that have not told theirs yet', async () => {
    const { join, breaks, pass, clock, fields } = startFleet()
    const [a, b] = [await join('a'), await join('b')]
    await breaks(a, 6)
    await pass(4)
    const backup = [...fields]
    await pass(60)
    fields.clear()
    for (const [name, text] of backup) fields.set(name, text)
    await a.places.news()
    await a.places.news()
    await clock.advance(900)
    await a.places.news()
    expect(sharesOf(a, b)).toEqual([3, 3])
    await pass(5)
    expect(sharesOf(a, b)).toEqual([3, 3])
  })

  it('are together never more than the wall, whether a sidecar joins, stalls, ends, loses the store or an answer', async () => {
    const acts = [
      'pass',
      'pass',
      'pass',
      'join',
      'leave',
      'end',
      'away',
      'loses',
      'late',
      'heal',
      'rest',
      'stall',
      'empty',
    ] as const
    const step = fc.record({ at: fc.nat(4), act: fc.constantFrom(...acts), load: fc.nat(6) })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 40 }), async (steps) => {
        const { join, breaks, pass, end, empty, stalled } = startFleet()
        type Joined = Awaited<ReturnType<typeof join>>
        const found = await join('s0')
        await breaks(found, 8)
        let present: Joined[] = [found]
        let next = 0
        const check = (what: string): void => {
          const sum = present.reduce((all, each) => all + Math.max(each.most, each.inside), 0)
          expect(sum, what).toBeLessThanOrEqual(8)
        }
        for (const { at, act, load } of steps) {
          const sidecar = present[at % present.length] ?? found
          const { network } = sidecar
          if (act === 'join' && present.length < 5) {
            next += 1
            present.push(await join(`s${next}`))
          } else if ((act === 'leave' || act === 'end') && present.length > 1) {
            if (act === 'leave') await sidecar.places.close()
            end(sidecar)
            present = present.filter((each) => each !== sidecar)
          } else if (act === 'away' || act === 'loses' || act === 'late') network[act] = true
          else if (act === 'heal') {
            network.away = network.loses = network.late = false
            network.deliver()
          } else if (act === 'rest') sidecar.isActive = !sidecar.isActive
          else if (
            act === 'empty' &&
            !present.some((each) => each.network.away || each.network.loses || each.network.late)
          )
            empty()
          // Requests end within a second; new ones come up to the bound.
          const seconds = act === 'stall' ? 20 + 5 * load : load
          if (act === 'stall') stalled.add(sidecar)
          for (let second = 0; second <= seconds; second += 1) {
            for (const each of present) each.inside = Math.min(load, each.most)
            check(act)
            await pass(1)
          }
          stalled.delete(sidecar)
        }
      }),
      { numRuns: 100 },
    )
  })
})

const beats = fc.dictionary(
  fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'),
  fc.record({
    ago: fc.constantFrom(0, 5_000, LIFE - 1, LIFE, GONE - 1, GONE),
    isActive: fc.boolean(),
    hasLeft: fc.boolean(),
  }),
  { minKeys: 1 },
)

describe('H286 the division of the places', () => {
  const NOW = 1_000_000_000_000

  type Known = Pick<Beat, 'isActive' | 'hasLeft'> & { readonly ago: number }

  /** The share of each sidecar that is known, with one, `me`, that has just said that it has requests. */
  function divided(most: number, all: Readonly<Record<string, Known>>, now = NOW) {
    const me: Known = { ago: 0, isActive: true, hasLeft: false }
    const known = Object.entries({ ...all, me }).map(
      ([id, { ago, ...flags }]) => [id, { at: now - ago, view: '', share: 0, level: 0, ...flags }] as const,
    )
    const { shareOf } = divide(most, new Map(known), now)
    return new Map(
      known
        .filter(([, { at, hasLeft }]) => now - at < (hasLeft ? LIFE : GONE))
        .map(([id]) => [id, shareOf(id)]),
    )
  }

  it('gives no more places than there are, all of them if a sidecar beats, and one to those that beat at least', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), beats, (most, all) => {
        const shares = divided(most, all)
        expect([...shares.values()].reduce((sum, share) => sum + share)).toBe(most)
        expect([...shares.values()].every((share) => Number.isInteger(share) && share >= 0)).toBe(true)
        const beating = [...shares].filter(([id]) => (all[id]?.ago ?? 0) < LIFE)
        expect(beating.reduce((sum, [, share]) => sum + share, 0)).toBeGreaterThan(0)
      }),
      { numRuns: 1_000 },
    )
  })

  it('gives those with requests equal parts before one without them gets a place, and a place in turn to each', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), beats, (most, all) => {
        const isActive = (id: string) => id === 'me' || all[id]?.isActive === true
        const beating = [...divided(most, all)].filter(([id]) => (all[id]?.ago ?? 0) < LIFE)
        const active = beating.filter(([id]) => isActive(id)).map(([, share]) => share)
        const idle = beating.filter(([id]) => !isActive(id)).map(([, share]) => share)
        expect(Math.max(...active) - Math.min(...active)).toBeLessThanOrEqual(1)
        expect(Math.max(0, ...idle)).toBeLessThanOrEqual(Math.min(1, ...active))
        const turns = Array.from({ length: active.length }, (_, turn) =>
          divided(most, all, NOW + turn * TURN).get('me'),
        )
        expect(Math.max(...turns.map((share) => share ?? 0))).toBeGreaterThan(0)
      }),
      { numRuns: 1_000 },
    )
  })
})

it('H286 while no sidecar has requests, no place passes from one to another', () => {
  const idle = { view: '', share: 0, level: 0, isActive: false, hasLeft: false }
  const sharesAt = (now: number) => {
    const { view, shareOf } = divide(1, new Map(['a', 'b', 'c'].map((id) => [id, { ...idle, at: now }])), now)
    return [view, ...['a', 'b', 'c'].map(shareOf)]
  }
  for (const turn of [1, 2, 3]) expect(sharesAt(turn * TURN)).toEqual(sharesAt(0))
})

describe('the wall of a fleet', () => {
  it('H264 is never tried again, over a year and a restart of all; a later break only lowers it', async () => {
    const { join, breaks, pass, clock, end } = startFleet()
    const [a, b] = [await join('a'), await join('b')]
    await breaks(a, 4)
    await pass(4)
    for (let week = 0; week < 52; week += 1) {
      await clock.advance(168 * HOUR)
      await pass(2)
      expect([a.wall, ...sharesOf(a, b)].join(' ')).toMatch(/^4 [12] [12]$/)
    }
    for (const each of [a, b]) end(each)
    const again = await join('a')
    await pass(4)
    expect(again.wall).toBe(4)
    await again.tell('broke', 9)
    expect(again.wall).toBe(4)
    await pass(10)
    await again.tell('broke', 2)
    await pass(4)
    expect(again.wall).toBe(2)
  })

  it('H287 that a sidecar has found alone counts in the fleet, if it is lower', async () => {
    const { join, breaks, pass } = startFleet()
    const [a, b] = [await join('a'), await join('b')]
    await breaks(a, 6)
    for (const [sum, wall] of [
      [8, 6],
      [4, 4],
    ] as const) {
      b.heard = { version: ALONE, sum, most: sum, share: 1, until: 0 }
      await pass(2)
      expect([a.wall, b.wall]).toEqual([wall, wall])
    }
  })

  it('H288 is lifted for all', async () => {
    const { join, breaks, pass } = startFleet()
    const [a, b] = [await join('a'), await join('b')]
    await breaks(a, 4)
    await pass(2)
    await b.tell('lifted')
    await pass(1)
    expect(a.wall).toBe(0)
    await pass(4)
    expect(sharesOf(a, b)).toEqual([32, 32])
  })

  it('H287 is told again to a server that was emptied, and a later word counts more than an earlier one', async () => {
    const { join, breaks, pass, empty } = startFleet()
    const [a, b] = [await join('a'), await join('b')]
    await breaks(a, 4)
    await pass(2)
    empty()
    await pass(1)
    expect(b.wall).toBe(4)
    a.network.away = true
    await b.tell('lifted')
    empty()
    a.network.away = false
    await a.places.news()
    expect(a.wall).toBe(4)
    await pass(12)
    expect(a.wall).toBe(0)
  })
})

describe('the script of the places', () => {
  async function startReal() {
    needs('redis-server')
    const redis = await startRedis()
    const { store } = await open(`valkey://${redis.at}`)
    const say = async (...args: readonly string[]) => {
      const [now, fields] = (await store.run(PLACES, ['{postern}:state'], [store.prefix, ...args])) as [
        string,
        string[],
      ]
      const kept = new Map(fields.flatMap((name, at) => (at % 2 === 0 ? [[name, fields[at + 1] ?? '']] : [])))
      return { now, kept }
    }
    return { redis, store, say }
  }

  it('H286 keeps what a sidecar says only in place of what it has read, and a wall, too', async () => {
    const { say, redis } = await startReal()
    const first = await say('d', 'a', '', 'one', '', '')
    expect(first.kept).toEqual(
      new Map([
        ['since', first.now],
        ['a', `${first.now} one`],
      ]),
    )
    expect((await say('d', 'a', '', 'late', '', '')).kept.get('a')).toBe(`${first.now} one`)
    const next = await say('d', 'a', `${first.now} one`, 'two', '', 'wall 1 2 3')
    expect([next.kept.get('a'), next.kept.get('wall')]).toEqual([`${next.now} two`, 'wall 1 2 3'])
    expect((await say('d', 'b', '', 'one', '', 'wall 2 0 0')).kept.get('wall')).toBe('wall 1 2 3')
    expect((await say('d', 'b', '', 'one', 'wall 1 2 3', 'wall 2 0 0')).kept.get('wall')).toBe('wall 2 0 0')
    expect((await say('other', 'a', '', 'one', '', '')).kept.get('wall')).toBeUndefined()
    expect(await redis.command('XLEN', '{postern}:events')).toBe('3')
  })

  it('H290 forgets a sidecar that was silent for an hour, and no wall', async () => {
    const { say, redis } = await startReal()
    await say('d', 'a', '', 'one', '', 'wall 1 2 3')
    await redis.command('HSET', '{postern}:p:d', 'gone', '1000 one', 'recent', `${Date.now()} one`)
    const { kept } = await say('d', 'b', '', 'one', '', '')
    expect([...kept.keys()].sort()).toEqual(['a', 'b', 'recent', 'since', 'wall'])
  })

  it('H286 two sidecars share a wall through a real server', async () => {
    const { store, redis } = await startReal()
    const clock = stillClock()
    const [a, b] = [new Sidecar('a', store, clock), new Sidecar('b', store, clock)]
    await a.join()
    await b.join()
    const [key = ''] = (await redis.command('KEYS', '*p:*')).split('\n')
    await redis.command('HSET', key, 'since', '1')
    await a.tell('broke', 4)
    await expect
      .poll(async () => {
        await clock.advance(1_000)
        for (const { places } of [a, b]) await places.news()
        return sharesOf(a, b)
      })
      .toEqual([2, 2])
  })
})
