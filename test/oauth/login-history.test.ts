import { describe, expect, it } from 'vitest'
import { compileAllow, type Scope, type Scopes } from '../../src/http/scope.ts'
import { KnownClients, MOST_KNOWN } from '../../src/oauth/known-clients.ts'
import { createLoginHistory } from '../../src/oauth/login-history.ts'
import { WrongPasswords } from '../../src/oauth/wrong-passwords.ts'
import { type Clock, nextTurn } from '../../src/system/clock.ts'
import type { GrantSummary, RecentGrants } from '../../src/tokens/grant-table.ts'
import type { LogInResult } from '../../src/tokens/issuing.ts'
import { stillClock } from '../support/clock.ts'

const MINUTE = 60_000
const WEEK = 7 * 24 * 60 * MINUTE

/** A live grant that ends in a minute. */
const summary = (clock: Clock, client: string): GrantSummary => ({
  id: 'g',
  client,
  issuedAt: clock.wall(),
  expiresAt: clock.wall() + MINUTE,
  usedAt: null,
  accessTokens: 1,
  refreshTokens: 1,
})

describe('A client that has logged in', () => {
  function start() {
    const clock = stillClock()
    return { clock, known: new KnownClients(clock, () => WEEK) }
  }

  it('C26 is known while its grant lives, and for a refresh lifetime after', () => {
    const { clock, known } = start()
    known.loggedIn('192.0.2.1', 'g1')
    clock.advance(2 * WEEK - 1)
    expect([known.has('192.0.2.1'), known.has('192.0.2.2')]).toEqual([true, false])
    clock.advance(1)
    expect(known.has('192.0.2.1')).toBe(false)
    known.loggedIn('192.0.2.1', 'g2')
    clock.advance(WEEK)
    for (const client of ['192.0.2.1', '192.0.2.2']) known.refreshed(client, 'g2')
    clock.advance(2 * WEEK - 1)
    expect([known.has('192.0.2.1'), known.has('192.0.2.2')]).toEqual([true, false])
  })

  it('C26 is unknown after four wrong passwords, until a right one; a refresh is none', () => {
    const { known } = start()
    known.loggedIn('192.0.2.1', 'g1')
    for (let i = 0; i < 3; i += 1) known.wrongPassword('192.0.2.1')
    expect(known.has('192.0.2.1')).toBe(true)
    known.wrongPassword('192.0.2.1')
    known.refreshed('192.0.2.1', 'g1')
    expect(known.has('192.0.2.1')).toBe(false)
    known.loggedIn('192.0.2.1', 'g2')
    expect(known.has('192.0.2.1')).toBe(true)
  })

  it.each([
    [{ all: true }, []],
    [{ client: '2001:db8:1:2::/64' }, ['192.0.2.1', '192.0.2.2']],
    [{ name: 'admin' }, ['2001:db8:1:2::/64', '192.0.2.2']],
    [{ grant: 'g2' }, ['2001:db8:1:2::/64', '192.0.2.1']],
    [{ grants: ['g2', 'g3'] }, ['192.0.2.1']],
    [{ token: 't' }, ['2001:db8:1:2::/64', '192.0.2.1', '192.0.2.2']],
  ] as const)('C26 is unknown when an operator revokes %j', (which, left) => {
    const { known } = start()
    const clients = { '2001:db8:1:2::/64': 'g3', '192.0.2.1': 'admin.g1', '192.0.2.2': 'g2' }
    for (const [client, grant] of Object.entries(clients)) known.loggedIn(client, grant)
    known.revoked(which)
    expect(Object.keys(clients).filter((client) => known.has(client))).toEqual(left)
  })

  it('C26 is known after a restart by its live grant, but not by a token that an operator issued', () => {
    const { clock, known } = start()
    for (let i = 0; i < 4; i += 1) known.wrongPassword('192.0.2.3')
    known.restore([summary(clock, '2001:db8:1:2::7'), { ...summary(clock, 'operator'), label: 'cron' }])
    expect([known.has('2001:db8:1:2::/64'), known.has('operator')]).toEqual([true, false])
    clock.advance(WEEK + MINUTE)
    expect(known.has('2001:db8:1:2::/64')).toBe(false)
  })

  it('C26 is one of at most 10,000: beyond that, the one that logged in first is forgotten', () => {
    const { known } = start()
    for (let i = 0; i < MOST_KNOWN; i += 1) known.loggedIn(`client ${i}`, 'g')
    known.loggedIn('client 0', 'g')
    known.loggedIn('another', 'g')
    expect([known.has('client 0'), known.has('client 1'), known.size]).toEqual([true, false, MOST_KNOWN])
  })
})

describe('Wrong passwords', () => {
  function start() {
    const clock = stillClock()
    return { clock, wrong: new WrongPasswords(clock) }
  }

  it('C26 count by address, an IPv6 /48 as one, and are forgotten after five to ten minutes', () => {
    const { clock, wrong } = start()
    wrong.add('192.0.2.1')
    clock.advance(5 * MINUTE)
    for (const client of ['2001:db8:1:2::/64', '2001:db8:1:3::/64', '192.0.2.1']) wrong.add(client)
    expect([wrong.of('2001:db8:1::/48'), wrong.of('192.0.2.1'), wrong.of('192.0.2.2')]).toEqual([2, 2, 0])
    expect(wrong.all()).toEqual({ wrong: 4, addresses: 2, from: ['192.0.2.1', '2001:db8:1::/48'] })
    clock.advance(5 * MINUTE)
    expect([wrong.of('192.0.2.1'), wrong.sum]).toEqual([1, 3])
    clock.advance(10 * MINUTE)
    expect(wrong.all()).toEqual({ wrong: 0, addresses: 0, from: [] })
  })

  it('C26 are remembered for the latest 10,000 addresses at most, and the ten worst are reported', () => {
    const { wrong } = start()
    for (let i = 0; i < 25_000; i += 1) wrong.add(`client ${i}`)
    for (let i = 24_990; i < 25_000; i += 1) wrong.add(`client ${i}`)
    const { addresses, from } = wrong.all()
    expect(addresses).toBeLessThanOrEqual(10_000)
    expect(from.toSorted()).toEqual(Array.from({ length: 10 }, (_, i) => `client ${24_990 + i}`))
    expect(wrong.of('client 24000')).toBe(1)
  })
})

describe('The history of logins', () => {
  function start(
    scopes?: Scopes,
    recent: () => RecentGrants | Promise<RecentGrants | 'unavailable'> = () => ({ total: 0, grants: [] }),
  ) {
    const clock = stillClock()
    const told: string[] = []
    const history = createLoginHistory({
      clock,
      settings: { gate: { scopes }, config: { tokens: { refreshLifetime: WEEK } } },
      onGuessing: ({ wrong, addresses }) => told.push(`guessing ${wrong} of ${addresses}`),
      onCrowded: ({ wrong }) => told.push(`crowded ${wrong}`),
      onBug: (error) => told.push(String(error)),
    })
    let result: LogInResult = 'wrong'
    const logIn = history.recorded(async () => result, { recentGrants: recent })
    return {
      clock,
      history,
      told,
      async logIn(outcome: LogInResult, from = '192.0.2.1', answered = false): Promise<void> {
        result = outcome
        const client = { address: from, key: from, peerTrusted: false, admitted: true, hops: 0 }
        await logIn('p', { client, answered, onEnd() {} }, 'password')
      },
    }
  }
  const tokens = (grant: string): LogInResult => ({
    grant,
    accessToken: 'a',
    refreshToken: 'r',
    expiresIn: 1,
  })

  it('C26 a name with an allow makes no client known, so it does not help to guess another password', async () => {
    const scopes: Scopes = new Map([
      ['admin', { name: 'admin', allows: undefined, onTrial: false }],
      ['monitor', { name: 'monitor', allows: compileAllow('read'), onTrial: false }],
    ])
    const { history, logIn } = start(scopes)
    await logIn(tokens('monitor.1'), '192.0.2.1')
    await logIn(tokens('admin.2'), '192.0.2.2')
    history.refreshed(
      { client: { address: '', key: '192.0.2.3', peerTrusted: false, admitted: true, hops: 0 } },
      'monitor.1',
    )
    const clients = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
    expect(clients.map(history.isKnown)).toEqual([false, true, false])
    // A right password of such a name forgives no wrong one of the client.
    for (let i = 0; i < 4; i += 1) await logIn('wrong', '192.0.2.2')
    await logIn(tokens('monitor.3'), '192.0.2.2')
    expect(history.isKnown('192.0.2.2')).toBe(false)
  })

  it('C26 a client is unknown while a reload restricts its name, or has removed it', async () => {
    const whole = { name: 'admin', allows: undefined, onTrial: false }
    const scopes = new Map<string, Scope>([['admin', whole]])
    const { history, logIn } = start(scopes)
    await logIn(tokens('admin.1'))
    expect(history.isKnown('192.0.2.1')).toBe(true)
    scopes.set('admin', { ...whole, allows: compileAllow('read') })
    expect(history.isKnown('192.0.2.1')).toBe(false)
    scopes.delete('admin')
    expect(history.isKnown('192.0.2.1')).toBe(false)
    scopes.set('admin', whole)
    expect(history.isKnown('192.0.2.1')).toBe(true)
  })

  it('C26 an address weighs less with each wrong password, also one of another name', async () => {
    const { history, logIn } = start()
    const weights = [history.weightOf('192.0.2.1')]
    for (const result of ['wrong', 'other-name', 'overloaded', 'unavailable'] as const) {
      await logIn(result)
      weights.push(history.weightOf('192.0.2.1'))
    }
    expect(weights).toEqual([1, 1 / 4, 1 / 9, 1 / 9, 1 / 9])
  })

  it('H32 guessing is reported once, at the 21st wrong password, refusals meanwhile once, and both again after quiet minutes', async () => {
    const { clock, told, logIn } = start()
    await logIn('overloaded')
    for (let i = 0; i < 30; i += 1) {
      if (i === 25) for (let refused = 0; refused < 3; refused += 1) await logIn('overloaded')
      await logIn('wrong', `192.0.2.${i % 3}`)
    }
    expect(told).toEqual(['guessing 21 of 3', 'crowded 25'])
    await clock.advance(11 * MINUTE)
    for (let i = 0; i < 21; i += 1) await logIn('wrong')
    await logIn('overloaded', '192.0.2.1', true)
    expect(told.slice(2)).toEqual(['guessing 21 of 1'])
  })

  it('C26 knows the clients of live grants from the start, and reads those of other sidecars once a minute', async () => {
    let reads = 0
    const { clock, history, told, logIn } = start(undefined, async () => {
      reads += 1
      if (reads === 2) return 'unavailable' as const
      if (reads === 3) throw new Error('a bug')
      return { total: 1, grants: [summary(stillClock(), '192.0.2.9')] }
    })
    await nextTurn()
    expect([reads, history.isKnown('192.0.2.9')]).toEqual([1, true])
    for (const ms of [0, 59_999, 1, 60_000]) {
      await clock.advance(ms)
      await logIn('wrong')
    }
    expect([reads, told]).toEqual([3, ['Error: a bug']])
  })

  describe('reads the live grants over several turns of the event loop', () => {
    const COUNT = 1_000
    const clientAt = (i: number): string => `10.0.${i >> 8}.${i & 255}`
    function startWithGrants() {
      const grants = Array.from({ length: COUNT }, (_, i) => ({
        ...summary(stillClock(), clientAt(i)),
        id: `g${i}`,
      }))
      const { history, logIn } = start(undefined, () => ({ total: COUNT, grants }))
      const isKnown = (i: number): boolean => history.isKnown(clientAt(i))
      return { history, logIn, isKnown, all: () => grants.every((_, i) => isKnown(i)) }
    }

    it('C26 a few in each, the latest last', async () => {
      const { isKnown, all } = startWithGrants()
      await nextTurn()
      expect([isKnown(COUNT - 1), isKnown(0)]).toEqual([true, false])
      await expect.poll(all).toBe(true)
    })

    it('C26 and begins anew if an operator revokes meanwhile', async () => {
      const { history, logIn, isKnown } = startWithGrants()
      await nextTurn()
      history.revoked({ client: clientAt(COUNT - 1) })
      for (let turn = 0; turn < 20; turn += 1) await nextTurn()
      expect([isKnown(COUNT - 1), isKnown(0)]).toEqual([false, false])
      await logIn('wrong', '192.0.2.1')
      await expect.poll(() => isKnown(0)).toBe(true)
    })
  })
})
